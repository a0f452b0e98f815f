"""Stores of the earlier format, without checksums: opened, upgraded, and rejected if they are damaged."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from podlife.apiserver.storage import Key, Put, SqliteStore, StoreError
from podlife.apiserver.storage.maintenance import backup, check, restore
from tests.unit.apiserver.storage.stores import opened

SCHEMA_1 = """
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema', 1), ('compacted', 4);
CREATE TABLE log (
  revision  INTEGER PRIMARY KEY,
  resource  TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  deleted   INTEGER NOT NULL,
  previous  INTEGER NOT NULL,
  value     BLOB NOT NULL
);
"""
# Two objects that compaction left, then a change, a creation and a removal.
ROWS = [(2, "b", 0, 0), (3, "a", 0, 0), (5, "a", 0, 3), (6, "c", 0, 0), (7, "b", 1, 2)]


def value(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"}}' % revision


@pytest.fixture
def old_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    connection = sqlite3.connect(folder / "store.db", isolation_level=None)
    connection.executescript(SCHEMA_1)
    for revision, name, deleted, previous in ROWS:
        row = (revision, "pods", "default", name, deleted, previous, value(revision))
        connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    (folder / "store.db").chmod(0o600)
    return folder


async def test_an_old_store_opens_with_everything_in_it_and_has_checksums_from_then_on(
    old_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(old_folder) as store:
        assert [(r.key.name, r.revision, r.value) for r in store.list("pods")] == [
            ("a", 5, value(5)),
            ("c", 6, value(6)),
        ]
        assert (store.revision, store.oldest) == (7, 4)
        events = (await store.subscribe("pods", since=4).next()).events
        assert [(e.type.value, e.revision) for e in events] == [("MODIFIED", 5), ("ADDED", 6), ("DELETED", 7)]
        (record,) = await store.commit(Put(Key("pods", "default", "new"), value, 0))
        assert record.revision == 8
    assert caplog.text == ""

    report = check(old_folder)
    assert (report.problems, report.revision, report.records) == ((), 8, 3)
    with sqlite3.connect(old_folder / "store.db") as connection:
        connection.execute("UPDATE log SET value = ? WHERE revision = 5", (value(5) + b" ",))
    connection.close()
    with pytest.raises(StoreError, match="does not match its checksum"):
        await SqliteStore.open(old_folder)


def test_an_old_store_is_checked_backed_up_and_restored(old_folder: Path, tmp_path: Path) -> None:
    assert check(old_folder).problems == ()
    assert backup(old_folder, tmp_path / "copy.db").records == 2
    restore(tmp_path / "copy.db", tmp_path / "restored")
    report = check(tmp_path / "restored")
    assert (report.problems, report.records) == ((), 2)


def test_an_old_store_with_a_value_that_is_no_object_is_refused_and_stays_as_it_is(old_folder: Path) -> None:
    with sqlite3.connect(old_folder / "store.db") as connection:
        connection.execute("UPDATE log SET value = ? WHERE revision = 5", (value(5)[:-3] + b"\xff\xff\xff",))
    connection.close()
    before = (old_folder / "store.db").read_bytes()
    with pytest.raises(StoreError, match=r"is damaged, nothing was upgraded: revision 5 \(pods default/a\)"):
        asyncio.run(SqliteStore.open(old_folder))
    assert (old_folder / "store.db").read_bytes() == before
