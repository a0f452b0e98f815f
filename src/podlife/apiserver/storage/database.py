"""The SQLite file of a store: one append-only log of changes.

A row is one change, under its revision. `previous` is the revision of the row it supersedes, 0 if it made the
object. A row may go once its successor is compacted, and a removal once it is compacted itself: then the log
still holds every standing object and every event after `compacted`. The last revision is the larger of
`compacted` and the newest row's, so it never goes back, even when the newest row has gone.

Everything here blocks and belongs to one thread at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path

from podlife.apiserver.storage.state import Row
from podlife.apiserver.storage.store import StoreError

__all__ = ["Database"]

SCHEMA_VERSION = 1
SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema', 1), ('compacted', 0);
CREATE TABLE log (
  revision  INTEGER PRIMARY KEY,
  resource  TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  deleted   INTEGER NOT NULL,
  previous  INTEGER NOT NULL,
  value     BLOB NOT NULL
);
COMMIT;
"""
PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 2000;
PRAGMA journal_size_limit = 67108864;
"""
# Two pods of usual size to a page; a lone write stays small all the same.
PAGE_BYTES = 8192
# More rows than this take several statements.
ROWS_PER_STATEMENT = 256
# Primary result codes of a disk that fails or is full; a file that is not ours gives others.
_DISK_TROUBLE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)


class Database:
    def __init__(self, path: Path) -> None:
        """Look at a file that is a store already. Raises StoreError when it is none."""
        self.path = path
        # Threads take turns: whoever opens it hands it over, and nobody shares it.
        self._connection = _connect(path)
        try:
            self._check_format()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def open(cls, path: Path) -> Database:
        """Open for writing, durably. The file must exist; an empty one becomes an empty store."""
        if path.stat().st_size == 0:
            connection = _connect(path)
            try:
                connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                connection.executescript(PRAGMAS + SCHEMA)
            finally:
                connection.close()
        database = cls(path)
        database.connection.executescript(PRAGMAS)
        return database

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection

    def close(self) -> None:
        self._connection.close()

    def compacted(self) -> int:
        return self._meta("compacted")

    def revision(self) -> int:
        """The last revision there was."""
        newest: int | None = self._connection.execute("SELECT max(revision) FROM log").fetchone()[0]
        return max(newest or 0, self.compacted())

    def rows(self) -> Iterator[Row]:
        """The whole log, oldest first."""
        return self._connection.execute(
            "SELECT revision, resource, namespace, name, deleted, previous, value FROM log ORDER BY revision"
        )

    def insert(self, rows: Sequence[Row]) -> None:
        """Write the rows in one transaction; durable on return. Raises sqlite3.Error, then none is there."""
        if len(rows) <= ROWS_PER_STATEMENT:
            # One statement is its own transaction, and lets go of the interpreter's lock only once: with a
            # statement per row a busy event loop would take the lock in between, every time.
            self._insert(rows)
            return
        with self.transaction():
            for start in range(0, len(rows), ROWS_PER_STATEMENT):
                self._insert(rows[start : start + ROWS_PER_STATEMENT])

    def compact(self, since: int, until: int) -> None:
        """Remove what is superseded at revision `until`; up to `since` that has been done before."""
        span = {"since": since, "until": until}
        with self.transaction():
            self._connection.execute("UPDATE meta SET value = :until WHERE name = 'compacted'", span)
            self._connection.execute(
                "DELETE FROM log WHERE revision IN"
                " (SELECT previous FROM log WHERE revision > :since AND revision <= :until)",
                span,
            )
            self._connection.execute(
                "DELETE FROM log WHERE revision > :since AND revision <= :until AND deleted", span
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # On a full disk SQLite may have rolled back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _insert(self, rows: Sequence[Row]) -> None:
        # A handful of statements, for sizes that are powers of two, is prepared once and used ever after.
        size = 1 << (len(rows) - 1).bit_length()
        values: list[object] = list(chain.from_iterable(rows))
        values.extend([None] * (7 * (size - len(rows))))
        self._connection.execute(_insert_statement(size), values)

    def _check_format(self) -> None:
        try:
            version = self._meta("schema")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in _DISK_TROUBLE:
                # Even to read, SQLite needs room for its index of the write-ahead log.
                text = f"{self.path} cannot be opened: {error}: is there room on the disk?"
                raise StoreError(text) from error
            raise StoreError(f"{self.path} is not a store: {error}") from error
        if version != SCHEMA_VERSION:
            raise StoreError(f"{self.path} has format {version}, this podlife only knows {SCHEMA_VERSION}")

    def _meta(self, name: str) -> int:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} is not a store: it does not say its {name}")
        return int(row[0])


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )


@cache
def _insert_statement(size: int) -> str:
    # Rows that only fill up have no revision and are left out.
    values = ",".join(["(?,?,?,?,?,?,?)"] * size)
    return f"INSERT INTO log SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"  # noqa: S608 - no input in it
