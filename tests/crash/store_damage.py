"""Damage to the files of a store, chosen by a seed, and a store with known content to do it to.

Bytes are flipped or overwritten, pages zeroed, swapped or filled with noise, files cut, emptied, removed or put back
from an older copy. Each damage says what it did, so that a failing seed explains itself.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from podlife.apiserver.storage import Delete, HistoryLimits, Key, Put, SqliteStore
from tests.unit.apiserver.storage.stores import value

PAGE = 8192
FRAME = PAGE + 24
RESOURCES = ("pods", "leases", "events")
# Some of the log is compacted, some of it is history, some stands in the write-ahead log alone.
LIMITS = HistoryLimits(events=150)

Damage = Callable[[Path, random.Random], str]


@dataclass
class Known:
    """Everything that was acknowledged, by key and by revision."""

    standing: dict[Key, tuple[int, bytes]] = field(default_factory=dict)
    changes: dict[int, tuple[Key, bool, bytes]] = field(default_factory=dict)
    revision: int = 0


async def fill(folder: Path, seed: int) -> Known:
    """A store as a killed process leaves it: its files are copied while it is open."""
    chance = random.Random(seed)
    known = Known()
    store = await SqliteStore.open(folder / "live", limits=LIMITS)
    for turn in range(chance.randint(200, 500)):
        resource, namespace = chance.choice(RESOURCES), chance.choice(["default", "kube-system"])
        key = Key(resource, namespace, f"o{chance.randrange(40)}")
        found = store.get(key)
        change = Delete if found is not None and chance.random() < 0.3 else Put
        size = chance.choice([7, 300, 2_400, 20_000])
        (record,) = await store.commit(
            change(key, value(f"{turn:07}" * (size // 7)), found.revision if found else 0)
        )
        if change is Delete:
            del known.standing[key]
        else:
            known.standing[key] = (record.revision, record.value)
        known.changes[record.revision] = (key, change is Delete, record.value)
        if turn == 150:
            # Without changes it waits for the writer's own work after those before it: files are copied at rest.
            await store.commit()
            _copy(folder / "live", folder / "older")
        if chance.random() < 0.02:
            # By a connection of its own: the store's writer may be at work on the store's.
            with closing(sqlite3.connect(folder / "live" / "store.db")) as other:
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    await store.commit()
    known.revision = store.revision
    _copy(folder / "live", folder / "killed")
    await store.close()
    _copy(folder / "live", folder / "closed")
    return known


def _copy(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for file in source.iterdir():
        # The index of the write-ahead log goes with the process.
        if not file.name.endswith("-shm"):
            shutil.copy2(file, target / file.name)


def flip_a_bit(folder: Path, chance: random.Random) -> str:
    file = _some_file(folder, chance)
    position = chance.randrange(file.stat().st_size)
    _change(file, position, lambda old: bytes([old[0] ^ 1 << chance.randrange(8)]), 1)
    return f"{file.name}: bit at byte {position}"


def overwrite_bytes(folder: Path, chance: random.Random) -> str:
    file = _some_file(folder, chance)
    position, count = chance.randrange(file.stat().st_size), chance.choice([1, 4, 16, 200])
    _change(file, position, lambda old: chance.randbytes(len(old)), count)
    return f"{file.name}: {count} bytes at {position}"


def zero_a_page(folder: Path, chance: random.Random) -> str:
    file, page = _some_page(folder, chance)
    _change(file, page * PAGE, lambda old: bytes(len(old)), PAGE)
    return f"{file.name}: page {page} zeroed"


def fill_a_page_with_noise(folder: Path, chance: random.Random) -> str:
    file, page = _some_page(folder, chance)
    _change(file, page * PAGE, lambda old: chance.randbytes(len(old)), PAGE)
    return f"{file.name}: page {page} is noise"


def swap_two_pages(folder: Path, chance: random.Random) -> str:
    file, one = _some_page(folder, chance)
    other = chance.randrange(max(1, file.stat().st_size // PAGE))
    content = bytearray(file.read_bytes())
    first, second = slice(one * PAGE, (one + 1) * PAGE), slice(other * PAGE, (other + 1) * PAGE)
    if len(content[first]) == len(content[second]):
        content[first], content[second] = content[second], content[first]
    file.write_bytes(content)
    return f"{file.name}: pages {one} and {other} swapped"


def put_a_page_back(folder: Path, chance: random.Random) -> str:
    """A write that the disk acknowledged and lost."""
    older = (folder.parent / "older" / "store.db").read_bytes()
    page = chance.randrange(max(1, len(older) // PAGE))
    _change(folder / "store.db", page * PAGE, lambda old: older[page * PAGE :][: len(old)], PAGE)
    return f"store.db: page {page} of an older copy"


def cut_a_file(folder: Path, chance: random.Random) -> str:
    file = _some_file(folder, chance)
    size = chance.randrange(file.stat().st_size)
    with file.open("r+b") as open_file:
        open_file.truncate(size)
    return f"{file.name}: cut to {size} bytes"


def empty_a_file(folder: Path, chance: random.Random) -> str:
    file = _some_file(folder, chance)
    file.write_bytes(b"")
    return f"{file.name}: emptied"


def remove_a_file(folder: Path, chance: random.Random) -> str:
    file = _some_file(folder, chance)
    file.unlink()
    return f"{file.name}: removed"


def cut_the_wal(folder: Path, chance: random.Random) -> str:
    wal = folder / "store.db-wal"
    if not wal.exists() or not wal.stat().st_size:
        return cut_a_file(folder, chance)
    frames = chance.randrange(max(1, wal.stat().st_size // FRAME))
    with wal.open("r+b") as file:
        file.truncate(32 + frames * FRAME)
    return f"store.db-wal: cut to {frames} frames"


def damage_a_frame(folder: Path, chance: random.Random) -> str:
    wal = folder / "store.db-wal"
    if not wal.exists() or not wal.stat().st_size:
        return overwrite_bytes(folder, chance)
    frame = chance.randrange(max(1, wal.stat().st_size // FRAME))
    _change(wal, 32 + frame * FRAME + chance.randrange(FRAME), lambda old: chance.randbytes(len(old)), 8)
    return f"store.db-wal: frame {frame} damaged"


def put_a_file_back(folder: Path, chance: random.Random) -> str:
    name = chance.choice(["store.db", "store.db-wal", "store.mark"])
    shutil.copy2(folder.parent / "older" / name, folder / name)
    return f"{name}: an older copy"


def _some_file(folder: Path, chance: random.Random) -> Path:
    names = [*["store.db"] * 4, *["store.db-wal"] * 3, "store.mark", "store.lock"]
    files = [folder / name for name in names]
    return chance.choice([file for file in files if file.exists() and file.stat().st_size])


def _some_page(folder: Path, chance: random.Random) -> tuple[Path, int]:
    file = folder / "store.db"
    return file, chance.randrange(max(1, file.stat().st_size // PAGE))


def _change(file: Path, position: int, change: Callable[[bytes], bytes], count: int) -> None:
    with file.open("r+b") as open_file:
        open_file.seek(position)
        old = open_file.read(count)
        open_file.seek(position)
        open_file.write(change(old) if old else b"")


DAMAGES: tuple[Damage, ...] = (
    *(cut_a_file, cut_the_wal, damage_a_frame, empty_a_file, fill_a_page_with_noise, flip_a_bit),
    *(overwrite_bytes, put_a_file_back, put_a_page_back, remove_a_file, swap_two_pages, zero_a_page),
)
