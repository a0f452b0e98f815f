"""What only a durable store has: durability, group commit, restarts, compaction, a single owner."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from podlife.apiserver.storage import (
    Delete,
    HistoryLimits,
    MismatchError,
    Put,
    Record,
    SqliteStore,
    StoreError,
    writer,
)
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.maintenance import check
from podlife.errors import ConfigError
from tests.conformance.storage.storage_kit import held, pod, start
from tests.unit.apiserver.storage.conftest import Gate
from tests.unit.apiserver.storage.stores import execute, opened, value


async def put(store: SqliteStore, name: str, content: str = "x") -> Record:
    record = store.get(pod(name))
    (written,) = await store.commit(Put(pod(name), value(content), record.revision if record else 0))
    return written


async def delete(store: SqliteStore, name: str) -> None:
    await store.commit(Delete(pod(name), value("gone"), held(store, pod(name)).revision))


async def arrived(gate: Gate) -> None:
    await asyncio.to_thread(gate.arrived.wait, 60)


async def test_a_change_cut_off_before_the_write_ahead_log_was_in_use_is_undone(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    path, journal = folder / "store.db", folder / "store.db-journal"
    path.touch(mode=0o600)
    Database.create(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        # More than fits into the cache: SQLite writes to the file, and remembers in the journal what was there.
        connection.executemany("INSERT INTO meta VALUES (?, 1)", ((f"{n:0100}",) for n in range(1000)))
        left = path.read_bytes(), journal.read_bytes()
        connection.execute("ROLLBACK")
    path.write_bytes(left[0])
    journal.write_bytes(left[1])

    with pytest.raises(StoreError, match="a change that was cut off"):
        check(folder)
    async with opened(folder) as store:
        await put(store, "a")
    assert not check(folder).problems


async def test_everything_is_there_after_a_restart(folder: Path) -> None:
    async with opened(folder) as store:
        await put(store, "a", "one")
        await put(store, "b")
        await put(store, "a", "two")
        await delete(store, "b")
        before = [(r.key, r.revision, r.value) for r in store.list("pods")]

    async with opened(folder) as again:
        assert [(r.key, r.revision, r.value) for r in again.list("pods")] == before
        assert (again.revision, again.oldest, again.count("pods")) == (4, 0, 1)
        batch = await again.subscribe("pods", since=0).next()
        assert [(e.type.value, e.record.key.name, e.revision) for e in batch.events] == [
            ("ADDED", "a", 1),
            ("ADDED", "b", 2),
            ("MODIFIED", "a", 3),
            ("DELETED", "b", 4),
        ]
        assert batch.events[2].previous is batch.events[0].record
        assert batch.events[3].previous is batch.events[1].record
        assert [r.revision for r in again.list("pods", revision=2)] == [1, 2]
        assert (await put(again, "c")).revision == 5


async def test_every_transaction_waits_for_the_disk(store: SqliteStore) -> None:
    def setting(name: str) -> object:
        return store._database.connection.execute(f"PRAGMA {name}").fetchone()[0]

    full = 2
    assert (setting("journal_mode"), setting("synchronous")) == (b"wal", full)


async def test_a_history_that_cannot_be_compacted_now_keeps_nobody_from_writing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(writer, "COMPACT_REVISIONS", 2)
    with monkeypatch.context() as failing:
        failing.setattr(Database, "compact", fail)
        store = await SqliteStore.open(folder, limits=HistoryLimits(events=2))
        for _ in range(10):
            await put(store, "a")
    assert "could not be compacted: database or disk is full" in caplog.text
    await put(store, "a")
    await store.close()
    report = check(folder)
    assert report.problems == ()
    assert report.revision == 11
    assert report.compacted > 0, "it was tried again"


async def test_a_change_is_seen_by_nobody_before_it_is_durable(store: SqliteStore, gate: Gate) -> None:
    subscription = store.subscribe("pods", since=0)
    gate.shut()
    waiting = start(subscription.next())
    commit = start(put(store, "a"))
    await arrived(gate)

    assert store.get(pod("a")) is None
    assert store.revision == 0
    assert not waiting.done()
    assert not commit.done()
    gate.open()
    assert (await commit).revision == 1
    assert (await waiting).events[0].record is store.get(pod("a"))


async def test_commits_that_arrive_while_the_disk_is_busy_share_one_transaction(
    store: SqliteStore, gate: Gate
) -> None:
    gate.shut()
    first = start(put(store, "first"))
    await arrived(gate)
    others = [start(put(store, f"p{i}")) for i in range(50)]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(first, *others)

    assert gate.transactions == [1, 50]


async def test_a_commit_on_a_key_in_flight_is_decided_after_it(store: SqliteStore, gate: Gate) -> None:
    await put(store, "a", "start")
    gate.shut()
    winner = start(store.commit(Put(pod("a"), value("first"), 1)))
    await asyncio.sleep(0)
    stale = start(store.commit(Put(pod("a"), value("stale"), 1)))
    follows = start(store.commit(Put(pod("a"), value("next"), 2)))
    await asyncio.sleep(0)
    gate.open()

    assert (await winner)[0].revision == 2
    with pytest.raises(MismatchError):
        await stale
    assert (await follows)[0].revision == 3


async def test_a_cancelled_commit_still_happens_and_the_next_one_sees_it(
    store: SqliteStore, gate: Gate
) -> None:
    gate.shut()
    cancelled = start(put(store, "a", "cancelled"))
    await arrived(gate)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    late = start(store.commit(Put(pod("a"), value("late"), 0)))
    await asyncio.sleep(0)
    gate.open()

    with pytest.raises(MismatchError, match="at revision 1, not absent"):
        await late
    assert b"cancelled" in held(store, pod("a")).value


async def test_the_file_keeps_only_what_stands_and_the_history_still_promised(folder: Path) -> None:
    limits = HistoryLimits(events=500)
    async with opened(folder, limits=limits) as store:
        await put(store, "untouched")
        for _ in range(60):
            await asyncio.gather(*(put(store, f"p{i}") for i in range(100)))
        revision = store.revision

    report = check(folder)
    assert report.problems == ()
    assert report.records == 101
    assert report.compacted >= revision - 500 - 1_000 - 200
    assert execute(folder, "SELECT count(*) FROM log") <= 101 + 500 + 1_000 + 200

    async with opened(folder, limits=limits) as again:
        assert again.revision == revision
        assert held(again, pod("untouched")).revision == 1
        assert again.count("pods") == 101


async def test_revisions_go_on_when_the_newest_row_was_a_removal_that_is_compacted(folder: Path) -> None:
    async with opened(folder) as store:
        await put(store, "a")
        await delete(store, "a")
        store._database.compact(0, 2)
    assert execute(folder, "SELECT count(*) FROM log") == 0

    async with opened(folder) as again:
        assert (again.revision, again.oldest) == (2, 2)
        assert (await put(again, "b")).revision == 3


async def test_the_log_beside_the_file_stays_bounded(folder: Path) -> None:
    async with opened(folder) as store:
        for _ in range(30):
            await asyncio.gather(*(put(store, f"p{i}", "v" * 20_000) for i in range(50)))
            assert (folder / "store.db-wal").stat().st_size < 24 << 20
    assert not (folder / "store.db-wal").exists()


async def test_only_the_owner_can_read_the_files(folder: Path, store: SqliteStore) -> None:
    await put(store, "a")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["store.db", "store.db-shm", "store.db-wal", "store.lock", "store.mark", "store.reserve"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


async def test_a_second_process_on_the_same_folder_is_refused(folder: Path, store: SqliteStore) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from podlife.apiserver.storage import SqliteStore\n"
        "from podlife.errors import ConfigError\n"
        "try: asyncio.run(SqliteStore.open(pathlib.Path(sys.argv[1])))\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == (
        f"the data folder {folder} is in use by process {os.getpid()}: stop it, or take another folder"
    )
    assert (await put(store, "a")).revision == 1


async def test_a_folder_is_free_again_once_its_store_is_closed(folder: Path) -> None:
    async with opened(folder):
        with pytest.raises(ConfigError, match="in use"):
            await SqliteStore.open(folder)
    async with opened(folder):
        pass


async def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"data folder .*/file/data cannot be used: Not a directory"):
        await SqliteStore.open(tmp_path / "file" / "data")


async def test_a_file_that_is_no_store_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "store.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreError, match="is not a store"):
        await SqliteStore.open(folder)

    assert (folder / "store.db").read_bytes() == b"something else entirely" * 100
    (folder / "store.db").unlink()
    async with opened(folder):
        pass


async def test_a_store_of_a_later_format_is_refused(folder: Path) -> None:
    async with opened(folder):
        pass
    execute(folder, "UPDATE meta SET value = 99 WHERE name = 'schema'")
    with pytest.raises(StoreError, match="has format 99, this podlife only knows up to 2"):
        await SqliteStore.open(folder)
