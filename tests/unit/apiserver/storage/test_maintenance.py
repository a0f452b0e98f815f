"""Backup, restore and check: beside a running server, never overwriting, reporting all damage."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from podlife.apiserver.storage import CompactedError, Delete, Put, SqliteStore, StoreError
from podlife.apiserver.storage.maintenance import backup, check, restore
from podlife.errors import ConfigError
from tests.conformance.storage.storage_kit import pod
from tests.unit.apiserver.storage.stores import execute, opened, value

VALUE = value()


async def fill(store: SqliteStore) -> None:
    """Three pods made, one changed, one removed: five revisions, two objects."""
    await store.commit(*(Put(pod(name), VALUE, 0) for name in ("a", "b", "c")))
    await store.commit(Put(pod("a"), VALUE, 1))
    await store.commit(Delete(pod("b"), VALUE, 2))


async def test_a_backup_of_a_running_store_is_one_sound_file_for_its_owner_only(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    await fill(store)
    target = tmp_path / "copy.db"
    report = await asyncio.to_thread(backup, folder, target)

    assert (report.path, report.revision, report.records) == (target, 5, 2)
    assert report.size_bytes == target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    checked = check(target)
    assert (checked.is_sound, checked.revision, checked.records, checked.events) == (True, 5, 2, 5)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "data"]


async def test_a_backup_from_another_process_while_writes_go_on_is_consistent(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    script = (
        "import pathlib, sys\n"
        "from podlife.apiserver.storage.maintenance import backup\n"
        "print(backup(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])).revision)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(folder), str(tmp_path / "copy.db"), stdout=subprocess.PIPE
    )
    written = 0
    while process.returncode is None:
        await asyncio.gather(*(store.commit(Put(pod(f"p{written + i}"), VALUE, 0)) for i in range(20)))
        written += 20
    assert process.stdout is not None
    copied = int(await process.stdout.read())

    assert process.returncode == 0
    assert 0 <= copied <= store.revision
    report = check(tmp_path / "copy.db")
    assert report.problems == ()
    assert (report.revision, report.records) == (copied, copied)


async def test_a_backup_never_overwrites(store: SqliteStore, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(ConfigError, match="exists already"):
        backup(folder, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_backup_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no store in"):
        backup(tmp_path, tmp_path / "copy.db")


async def test_a_backup_that_cannot_be_written_leaves_nothing_behind(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="could not be written"):
        backup(folder, tmp_path / "nowhere" / "copy.db")


async def test_a_restored_store_holds_the_same_objects_and_goes_on_well_after_them(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    await fill(store)
    backup(folder, tmp_path / "copy.db")
    await store.commit(Put(pod("lost"), VALUE, 0))
    report = restore(tmp_path / "copy.db", tmp_path / "restored")

    assert report.records == 2
    assert check(tmp_path / "restored").problems == ()
    async with opened(tmp_path / "restored") as restored:
        assert [(r.key, r.revision, r.value) for r in restored.list("pods")] == [
            (pod("a"), 4, VALUE(4)),
            (pod("c"), 3, VALUE(3)),
        ]
        assert restored.revision == report.revision > store.revision
        with pytest.raises(CompactedError):
            # A client of the lost period must start again and is never misled.
            restored.subscribe("pods", since=store.revision)
        (record,) = await restored.commit(Put(pod("new"), VALUE, 0))
        assert record.revision == report.revision + 1
    assert check(tmp_path / "restored").problems == ()


async def test_a_backup_that_is_restored_twice_gives_no_revision_twice(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    await fill(store)
    await store.close()
    backup(folder, tmp_path / "copy.db")
    served = []
    for _ in range(2):
        (folder / "store.db").write_bytes(b"")
        report = restore(tmp_path / "copy.db", folder)
        async with opened(folder) as restored:
            (record,) = await restored.commit(Put(pod("new"), VALUE, 0))
            served += [report.revision, record.revision]
    assert served == sorted(set(served))


async def test_a_restore_over_a_store_is_refused(store: SqliteStore, folder: Path, tmp_path: Path) -> None:
    await fill(store)
    backup(folder, tmp_path / "copy.db")
    with pytest.raises(ConfigError, match="in use"):
        restore(tmp_path / "copy.db", folder)
    await store.close()
    with pytest.raises(ConfigError, match="holds a store already"):
        restore(tmp_path / "copy.db", folder)
    assert check(folder).records == 2


async def test_a_restore_of_an_unsound_backup_is_refused_and_leaves_no_store(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    await fill(store)
    await store.close()
    backup(folder, tmp_path / "copy.db")
    execute(tmp_path / "copy.db", "UPDATE log SET value = 'nonsense' WHERE revision = 4")

    refusal = r"is not sound, nothing was restored: revision 4 \(pods default/a\)"
    with pytest.raises(StoreError, match=refusal):
        restore(tmp_path / "copy.db", tmp_path / "restored")
    assert not (tmp_path / "restored" / "store.db").exists()


async def test_a_check_beside_a_running_store_finds_nothing_wrong(store: SqliteStore, folder: Path) -> None:
    await fill(store)
    report = check(folder)

    assert report.problems == ()
    assert (report.revision, report.compacted, report.records) == (5, 0, 2)
    assert (report.events, report.skipped) == (5, 0)


@pytest.mark.parametrize(
    ("harm", "finding"),
    [
        ("UPDATE log SET value = x'7b' WHERE revision = 3", "revision 3 (pods default/c) holds no object"),
        ('UPDATE log SET value = \'{"metadata":{"resourceVersion":"9"}}\' WHERE revision = 3', "says its"),
        ("DELETE FROM log WHERE revision = 1", "revision 4 (pods default/a) follows revision 1, but 0 stood"),
        ("DELETE FROM log WHERE revision = 2", "revision 5 (pods default/b) removes what was not there"),
        (
            "UPDATE log SET name = 'c' WHERE revision = 4",
            "revision 4 (pods default/c) follows revision 1, but 3",
        ),
        (
            "UPDATE meta SET value = 4 WHERE name = 'compacted'",
            "its metadata does not match its checksum",
        ),
    ],
)
async def test_a_check_finds_what_was_tampered_with(
    store: SqliteStore, folder: Path, harm: str, finding: str
) -> None:
    await fill(store)
    await store.close()
    execute(folder, harm)
    report = check(folder)

    assert not report.is_sound
    assert any(finding in problem for problem in report.problems), report.problems


async def test_a_check_finds_a_damaged_file(store: SqliteStore, folder: Path) -> None:
    for i in range(200):
        await store.commit(Put(pod(f"p{i}"), value(5000), 0))
    await store.close()
    with (folder / "store.db").open("r+b") as file:
        file.seek(20 * 8192)
        file.write(b"\xff" * 3 * 8192)

    report = check(folder)
    assert any(problem.startswith("SQLite: ") for problem in report.problems)


async def test_a_backup_writes_through_no_link_that_somebody_has_laid(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    await fill(store)
    shared = tmp_path / "shared"
    shared.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    (shared / ".copy.db.partial").symlink_to(precious)
    backup(folder, shared / "copy.db")
    assert precious.read_text() == "untouched"
    assert not (shared / "copy.db").is_symlink()
    assert stat.S_IMODE((shared / "copy.db").stat().st_mode) == 0o600


async def test_a_file_that_appears_while_a_backup_is_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "data"):
        target = tmp_path / "copy.db"
        sync = os.fsync

        def appear(descriptor: int) -> None:
            target.write_text("of somebody else")
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", appear)
        with pytest.raises(ConfigError, match="exists already"):
            backup(tmp_path / "data", target)
        monkeypatch.undo()
    assert target.read_text() == "of somebody else"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_link_to_nowhere_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "copy.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="exists already"):
        backup(tmp_path, tmp_path / "copy.db")
