"""Files that somebody takes away or changes under a running store: no write into them is acknowledged."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from podlife.apiserver.storage import HistoryLimits, Put, SqliteStore, StoreError, StoreLostError
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.maintenance import check
from podlife.apiserver.storage.records import Row
from tests.conformance.storage.storage_kit import pod
from tests.unit.apiserver.storage.stores import opened, value

STORE, WAL = "store.db", "store.db-wal"
SINCE = "while the server was running"

Harm = Callable[[Path], object]


def put(name: str) -> Put:
    return Put(pod(name), value(3000), 0)


def replace(file: Path) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.rename(file)


def move(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def empty(file: Path) -> None:
    os.truncate(file, 0)


def truncate(file: Path) -> None:
    os.truncate(file, 8192)


def overwrite(file: Path) -> None:
    """As `cp` does: the same file, with other content, that is no shorter."""
    other = file.with_name("other.db")
    other.touch()
    Database.create(other)
    file.write_bytes(other.read_bytes().ljust(file.stat().st_size, b"\0"))


def damage(file: Path) -> None:
    with file.open("r+b") as opened_file:
        opened_file.seek(5000)
        opened_file.write(b"\0" * 50_000)


@pytest.mark.parametrize(
    ("name", "harm", "expected"),
    [
        (STORE, Path.unlink, f"store.db was removed {SINCE}"),
        (STORE, move, f"store.db was removed {SINCE}"),
        (STORE, replace, f"store.db was replaced {SINCE}"),
        (STORE, empty, f"store.db was emptied {SINCE}"),
        (STORE, truncate, f"store.db was truncated {SINCE}"),
        (STORE, overwrite, f"store.db was changed {SINCE}: it is of another cluster"),
        (WAL, Path.unlink, f"store.db-wal was removed {SINCE}"),
        (WAL, replace, f"store.db-wal was replaced {SINCE}"),
        (WAL, empty, f"store.db-wal was truncated {SINCE}"),
        (WAL, damage, f"store.db was changed {SINCE}: "),
    ],
)
async def test_no_write_is_acknowledged_once_a_file_was_harmed_and_reads_go_on(
    folder: Path, caplog: pytest.LogCaptureFixture, name: str, harm: Harm, expected: str
) -> None:
    async with opened(folder) as first:
        for number in range(30):
            await first.commit(put(f"early-{number}"))
        # Folds the write-ahead log into the database.
    async with opened(folder) as store:
        for number in range(30):
            await store.commit(put(f"late-{number}"))

        harm(folder / name)
        with caplog.at_level(logging.ERROR):
            for number in range(3):
                with pytest.raises(
                    StoreLostError, match="writes are refused until the server is restarted"
                ) as refused:
                    await store.commit(put(f"lost-{number}"))
                assert expected in str(refused.value)
        assert expected in store.trouble
        assert len(caplog.records) == 1, "it is reported once"
        assert store.count("pods") == 60


@pytest.mark.parametrize(("name", "harm"), [(STORE, Path.unlink), (STORE, replace), (WAL, Path.unlink)])
async def test_a_file_that_goes_during_the_write_fails_that_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, harm: Harm
) -> None:
    async with opened(folder) as store:
        await store.commit(put("kept"))
        insert = Database.insert

        def harmed(database: Database, rows: Sequence[Row]) -> None:
            insert(database, rows)
            harm(folder / name)

        monkeypatch.setattr(Database, "insert", harmed)
        with pytest.raises(StoreLostError):
            await store.commit(put("lost"))
        assert [record.key.name for record in store.list("pods")] == ["kept"]


async def test_content_that_is_replaced_while_the_log_is_folded_is_found_before_the_acknowledgement(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(folder) as store:
        await store.commit(put("kept"))
        insert = Database.insert

        def folded(database: Database, rows: Sequence[Row]) -> None:
            insert(database, rows)
            database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            overwrite(folder / STORE)

        monkeypatch.setattr(Database, "insert", folded)
        with pytest.raises(StoreLostError, match="of another cluster"):
            await store.commit(put("lost"))


async def test_a_time_that_changed_and_nothing_else_does_no_harm(folder: Path) -> None:
    async with opened(folder) as store:
        await store.commit(put("a"))
        for name in ("store.db", "store.db-wal"):
            os.utime(folder / name, (1, 1))
        await store.commit(put("b"))
        assert (store.trouble, store.count("pods")) == ("", 2)


async def test_a_store_that_was_moved_away_and_back_has_all_that_was_acknowledged(folder: Path) -> None:
    async with opened(folder) as store:
        for number in range(20):
            await store.commit(put(f"p-{number}"))
        move(folder / STORE)
        with pytest.raises(StoreError):
            await store.commit(put("lost"))
    (folder / "elsewhere.db").rename(folder / "store.db")

    async with opened(folder) as again:
        assert again.count("pods") == 20
        await again.commit(put("next"))


@pytest.mark.parametrize("harm", [Path.unlink, empty, truncate, overwrite])
async def test_the_next_start_refuses_what_is_left_and_says_how_to_restore_it(
    folder: Path, harm: Harm
) -> None:
    async with opened(folder) as store:
        for number in range(30):
            await store.commit(put(f"p-{number}"))
        harm(folder / STORE)
        with pytest.raises(StoreLostError):
            await store.commit(put("lost"))
    with pytest.raises(StoreError, match=f"podlife apiserver restore FILE --data {folder}"):
        await SqliteStore.open(folder)


async def test_own_folding_compaction_and_truncation_are_not_taken_for_somebody_elses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podlife.apiserver.storage.writer.COMPACT_REVISIONS", 10)
    async with opened(folder, limits=HistoryLimits(events=64)) as store:
        store._database.connection.execute("PRAGMA wal_autocheckpoint = 4")
        for number in range(200):
            await store.commit(put(f"p-{number}"))
        assert store.trouble == ""
    assert check(folder).compacted > 50
    async with opened(folder) as again:
        assert again.count("pods") == 200


async def test_what_sqlite_does_before_a_write_fails_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as store:
        await store.commit(put("first"))
        insert = Database.insert

        def fail(database: Database, rows: object) -> None:
            """As on a failing disk, after SQLite has emptied its write-ahead log."""
            database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(Database, "insert", fail)
        with pytest.raises(StoreError, match="disk I/O error"):
            await store.commit(put("second"))
        monkeypatch.setattr(Database, "insert", insert)
        await store.commit(put("third"))
