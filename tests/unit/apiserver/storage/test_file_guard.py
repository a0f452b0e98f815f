"""Files that somebody takes away or changes under a running store: no write into them is acknowledged."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from podlife.apiserver.storage import Key, Put, SqliteStore, StoreError
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.maintenance import check
from podlife.apiserver.storage.state import HistoryLimits
from podlife.apiserver.storage.store import StoreLostError


def put(name: str) -> Put:
    return Put(
        Key("pods", "default", name), lambda revision: b'{"r":%d,"x":"%s"}' % (revision, b"v" * 3000), 0
    )


def _another_store(folder: Path) -> bytes:
    other = folder / "other.db"
    other.touch()
    Database.create(other)
    return other.read_bytes()


def remove(folder: Path) -> None:
    (folder / "store.db").unlink()


def move(folder: Path) -> None:
    (folder / "store.db").rename(folder / "elsewhere.db")


def replace(folder: Path) -> None:
    (folder / "copy.db").write_bytes((folder / "store.db").read_bytes())
    (folder / "copy.db").rename(folder / "store.db")


def empty(folder: Path) -> None:
    os.truncate(folder / "store.db", 0)


def truncate(folder: Path) -> None:
    os.truncate(folder / "store.db", 8192)


def overwrite(folder: Path) -> None:
    """As `cp` does: the same file, with other content, that is no shorter."""
    content = _another_store(folder)
    content += b"\0" * ((folder / "store.db").stat().st_size - len(content))
    (folder / "store.db").write_bytes(content)


def remove_wal(folder: Path) -> None:
    (folder / "store.db-wal").unlink()


def replace_wal(folder: Path) -> None:
    (folder / "copy").write_bytes((folder / "store.db-wal").read_bytes())
    (folder / "copy").rename(folder / "store.db-wal")


def empty_wal(folder: Path) -> None:
    os.truncate(folder / "store.db-wal", 0)


def damage_wal(folder: Path) -> None:
    with (folder / "store.db-wal").open("r+b") as file:
        file.seek(5000)
        file.write(b"\0" * 50_000)


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (remove, "store.db was removed while the server was running"),
        (move, "store.db was removed while the server was running"),
        (replace, "store.db was replaced while the server was running"),
        (empty, "store.db was emptied while the server was running"),
        (truncate, "store.db was truncated while the server was running"),
        (overwrite, "store.db was changed while the server was running: it is of another cluster"),
        (remove_wal, "store.db-wal was removed while the server was running"),
        (replace_wal, "store.db-wal was replaced while the server was running"),
        (empty_wal, "store.db-wal was truncated while the server was running"),
        (damage_wal, "store.db was changed while the server was running: "),
    ],
)
async def test_no_write_is_acknowledged_once_a_file_was_harmed_and_reads_go_on(
    folder: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None], expected: str
) -> None:
    first = await SqliteStore.open(folder)
    for number in range(30):
        await first.commit(put(f"early-{number}"))
    # Folds the write-ahead log into the database.
    await first.close()
    store = await SqliteStore.open(folder)
    for number in range(30):
        await store.commit(put(f"late-{number}"))

    harm(folder)
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
    await store.close()


@pytest.mark.parametrize("harm", [remove, replace, remove_wal])
async def test_a_file_that_goes_during_the_write_fails_that_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    store = await SqliteStore.open(folder)
    await store.commit(put("kept"))
    insert = Database.insert

    def harmed(database: Database, rows) -> None:
        insert(database, rows)
        harm(folder)

    monkeypatch.setattr(Database, "insert", harmed)
    with pytest.raises(StoreLostError):
        await store.commit(put("lost"))
    assert [record.key.name for record in store.list("pods")] == ["kept"]
    await store.close()


async def test_content_that_is_replaced_while_the_log_is_folded_is_found_before_the_acknowledgement(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(folder)
    await store.commit(put("kept"))
    insert = Database.insert

    def folded(database: Database, rows) -> None:
        insert(database, rows)
        database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        overwrite(folder)

    monkeypatch.setattr(Database, "insert", folded)
    with pytest.raises(StoreLostError, match="of another cluster"):
        await store.commit(put("lost"))
    await store.close()


async def test_a_time_that_changed_and_nothing_else_does_no_harm(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await store.commit(put("a"))
    for name in ("store.db", "store.db-wal"):
        os.utime(folder / name, (1, 1))
    await store.commit(put("b"))
    assert (store.trouble, store.count("pods")) == ("", 2)
    await store.close()


async def test_a_store_that_was_moved_away_and_back_has_all_that_was_acknowledged(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    for number in range(20):
        await store.commit(put(f"p-{number}"))
    move(folder)
    with pytest.raises(StoreError):
        await store.commit(put("lost"))
    await store.close()
    (folder / "elsewhere.db").rename(folder / "store.db")

    again = await SqliteStore.open(folder)
    assert again.count("pods") == 20
    await again.commit(put("next"))
    await again.close()


@pytest.mark.parametrize("harm", [remove, empty, truncate, overwrite])
async def test_the_next_start_refuses_what_is_left_and_says_how_to_restore_it(
    folder: Path, harm: Callable[[Path], None]
) -> None:
    store = await SqliteStore.open(folder)
    for number in range(30):
        await store.commit(put(f"p-{number}"))
    harm(folder)
    with pytest.raises(StoreLostError):
        await store.commit(put("lost"))
    await store.close()
    with pytest.raises(StoreError, match=f"podlife apiserver restore FILE --data {folder}"):
        await SqliteStore.open(folder)


async def test_own_folding_compaction_and_truncation_are_not_taken_for_somebody_elses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podlife.apiserver.storage.writer.COMPACT_REVISIONS", 10)
    store = await SqliteStore.open(folder, limits=HistoryLimits(events=64))
    store._database.connection.execute("PRAGMA wal_autocheckpoint = 4")
    for number in range(200):
        await store.commit(put(f"p-{number}"))
    assert store.trouble == ""
    await store.close()
    assert check(folder).compacted > 50
    again = await SqliteStore.open(folder)
    assert again.count("pods") == 200
    await again.close()


async def test_what_sqlite_does_before_a_write_fails_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(tmp_path)
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
    await store.close()
