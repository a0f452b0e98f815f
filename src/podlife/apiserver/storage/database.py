"""SQLite file of a store: one append-only log of changes.

A row is one change, under its revision. `previous` is the revision of the row it supersedes, 0 if it created the
object. A row may be removed once its successor is compacted, and a deletion once it is compacted itself: the log
still holds every existing object and every event after `compacted`. The last revision is the larger of `compacted`
and the newest row's, so it never goes back, even if the newest row is gone.

Each row has three CRC-32 values. `head` covers everything but the value, so that a damaged value still has a trusted
name; `checksum` covers the whole row; `chain` continues the previous row's chain, so that a missing row shows at its
successor. For the rows that compaction keeps, `meta` has the sum of the checksums up to `compacted` (`standing`) and
the chain at that point; `verification` checks the log against both. CRC-32 detects what disks and crashes do; it does
not protect against someone who can write the files (ADR 9).

All calls block and belong to one thread at a time.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

from podlife.apiserver.storage.records import Row, StoreError

SCHEMA_VERSION = 2
# The earlier format without checksums. `upgrade` adds them.
VERSION_WITHOUT_CHECKSUMS = 1
META = "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID"
LOG = """
CREATE TABLE log (
  revision  INTEGER PRIMARY KEY,
  resource  TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  deleted   INTEGER NOT NULL,
  previous  INTEGER NOT NULL,
  head      INTEGER NOT NULL,
  checksum  INTEGER NOT NULL,
  chain     INTEGER NOT NULL,
  value     BLOB NOT NULL
)"""
# Number of pages after which the write-ahead log is checkpointed.
WAL_PAGES = 2_000
WAL_PAGES_WHEN_FULL = 50
PRAGMAS = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = {WAL_PAGES};
PRAGMA journal_size_limit = 67108864;
"""
# Two pods of usual size to a page; a single write stays small nevertheless.
PAGE_BYTES = 8192
# More rows than this take several statements.
ROWS_PER_STATEMENT = 256
COLUMNS = 10
# Primary result codes of a failing or full disk; a foreign file gives others.
_DISK_TROUBLE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)

SealedRow = tuple[int, str, str, str, int, int, int, int, int, bytes]
"""A row with its checksums, in the order of the columns: head, checksum and chain precede the value."""

ReadRow = tuple[int, Any, Any, Any, Any, Any, Any, Any, Any, Any]
"""A row as in the file, with text as bytes. In a damaged file a column may be of any type."""


class NotAStoreError(StoreError):
    """The file is of another kind, or damaged from its beginning."""


class Database:
    def __init__(self, path: Path, *, writes: bool = False) -> None:
        """Open an existing store; raises StoreError if the file is not one. Unless it `writes`, it leaves the file
        and the write-ahead log unchanged, even if it is the last to close them."""
        self.path = path
        # Threads take turns: the opener hands the connection over, and it is never shared.
        self.connection = _connect(path, "rw" if writes else "ro")
        try:
            self.version = self._check_format()
            # Chain of the newest row, for a database that writes.
            self.chain = self.newest_chain() if writes and self.has_checksums else 0
        except BaseException:
            self.connection.close()
            raise

    @classmethod
    def create(cls, path: Path) -> None:
        """Turn an empty file into an empty store, in one file."""
        with closing(_connect(path, "rw")) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.executescript(f"BEGIN; {META}; {LOG};")
            write_meta(connection, first_meta())
            connection.execute("COMMIT")

    @staticmethod
    def undo_interrupted(path: Path) -> None:
        """Undo a change that a crash cut off before the write-ahead log was in use: only a connection that writes can.
        Call it while holding the folder's lock. Raises sqlite3.Error."""
        if path.with_name(f"{path.name}-journal").exists():
            with closing(_connect(path, "rw")) as connection:
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()

    @classmethod
    def open(cls, path: Path) -> Database:
        """Open a store of the current format for writing, durably."""
        database = cls(path, writes=True)
        database.connection.executescript(PRAGMAS)
        return database

    @property
    def has_checksums(self) -> bool:
        return self.version != VERSION_WITHOUT_CHECKSUMS

    def close(self) -> None:
        self.connection.close()

    def meta(self) -> dict[str, int]:
        """Raise StoreError if the metadata is inconsistent."""
        meta = {
            bytes(name).decode(errors="replace"): value
            for name, value in self.connection.execute("SELECT name, value FROM meta")
        }
        missing = {"compacted"} - meta.keys()
        if missing or not all(isinstance(value, int) for value in meta.values()):
            raise StoreError(f"{self.path} is damaged: its metadata is incomplete")
        if self.has_checksums and meta.get("checksum") != meta_checksum(meta):
            raise StoreError(f"{self.path} is damaged: its metadata does not match its checksum")
        return meta

    def compacted(self) -> int:
        return self.meta()["compacted"]

    def revision(self) -> int:
        """The last revision."""
        newest: int | None = self.connection.execute("SELECT max(revision) FROM log").fetchone()[0]
        return max(newest or 0, self.compacted())

    def newest_chain(self) -> int:
        """The chain of the newest row."""
        meta = self.meta()
        newest = self.connection.execute(
            "SELECT chain FROM log WHERE revision > ? ORDER BY revision DESC LIMIT 1", (meta["compacted"],)
        ).fetchone()
        return int(meta["chain"] if newest is None else newest[0])

    def chain_at(self, revision: int) -> int | None:
        """Chain of a row; None if there is no such row, or no longer."""
        row = self.connection.execute("SELECT chain FROM log WHERE revision = ?", (revision,)).fetchone()
        return None if row is None else row[0]

    def rows(self, *, after: int = 0, is_reversed: bool = False) -> Iterator[ReadRow]:
        """The whole log, or what is after a revision, oldest first unless reversed."""
        seals = "head, checksum, chain" if self.has_checksums else "0, 0, 0"
        where = f"WHERE revision > {after:d}" if after else ""
        return self.connection.execute(
            f"SELECT revision, resource, namespace, name, deleted, previous, {seals}, value"  # noqa: S608 - numbers only
            f" FROM log {where} ORDER BY revision {'DESC' if is_reversed else 'ASC'}"
        )

    def insert(self, rows: Sequence[Row]) -> None:
        """Write the rows in one transaction; durable on return. Raises sqlite3.Error, then none is written."""
        sealed = seal(rows, self.chain)
        if len(sealed) <= ROWS_PER_STATEMENT:
            # One statement is its own transaction, and releases the interpreter's lock only once: with a statement
            # per row a busy event loop would take the lock in between, every time.
            insert_sealed(self.connection, sealed)
        else:
            with self.transaction():
                for start in range(0, len(sealed), ROWS_PER_STATEMENT):
                    insert_sealed(self.connection, sealed[start : start + ROWS_PER_STATEMENT])
        *_, self.chain, _ = sealed[-1]

    def free_bytes(self) -> int:
        """Bytes the file has room for without growing."""
        (pages,) = self.connection.execute("PRAGMA freelist_count").fetchone()
        (size,) = self.connection.execute("PRAGMA page_size").fetchone()
        return int(pages) * int(size)

    def use_wal_pages(self, pages: int) -> None:
        """Let the write-ahead log grow to this many pages, and truncate it now."""
        self.connection.execute(f"PRAGMA wal_autocheckpoint = {pages:d}")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def compact(self, since: int, until: int) -> None:
        """Remove what is superseded at revision `until`; up to `since` that has been done before."""
        span = {"since": since, "until": until}
        superseded = "revision IN (SELECT previous FROM log WHERE revision > :since AND revision <= :until)"
        within = "revision > :since AND revision <= :until"
        with self.transaction():
            meta = self.meta()
            added = self._sum(within, span)
            newest = self.connection.execute(
                f"SELECT chain FROM log WHERE {within} ORDER BY revision DESC LIMIT 1",  # noqa: S608 - no input in it
                span,
            ).fetchone()
            removed = self._remove(superseded, span) + self._remove(f"{within} AND deleted", span)
            meta |= {"compacted": until, "standing": meta["standing"] + added - removed}
            if newest is not None:
                meta["chain"] = newest[0]
            write_meta(self.connection, meta)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            # On a full disk SQLite may already have rolled back.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def _sum(self, where: str, span: Mapping[str, int]) -> int:
        statement = f"SELECT coalesce(sum(checksum), 0) FROM log WHERE {where}"  # noqa: S608 - no input in it
        return int(self.connection.execute(statement, span).fetchone()[0])

    def _remove(self, where: str, span: Mapping[str, int]) -> int:
        """Sum of the checksums of the removed rows."""
        removed = self._sum(where, span)
        self.connection.execute(f"DELETE FROM log WHERE {where}", span)  # noqa: S608 - no input in it
        return removed

    def _check_format(self) -> int:
        try:
            row = self.connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in _DISK_TROUBLE:
                # Even to read, SQLite needs room for its index of the write-ahead log.
                text = f"{self.path} cannot be opened: {error}: is there room on the disk?"
                raise StoreError(text) from error
            if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
                text = f"{self.path} has a change that was cut off; the server undoes it when it starts"
                raise StoreError(text) from error
            raise NotAStoreError(f"{self.path} is not a store: {error}") from error
        version = None if row is None else row[0]
        if version not in (VERSION_WITHOUT_CHECKSUMS, SCHEMA_VERSION):
            raise StoreError(
                f"{self.path} has format {version!r}, this podlife only knows up to {SCHEMA_VERSION}"
            )
        return int(version)


def head_of(
    revision: int, resource: bytes, namespace: bytes, name: bytes, deleted: int, previous: int
) -> int:
    return crc32(b"%d\0%b\0%b\0%b\0%d\0%d" % (revision, resource, namespace, name, deleted, previous))


def link(chain: int, checksum: int) -> int:
    """The chain after one more row."""
    return crc32(b"%d" % checksum, chain)


def as_written(row: ReadRow) -> Row:
    """An intact row without its checksums."""
    revision, resource, namespace, name, deleted, previous, *_, value = row
    return revision, resource.decode(), namespace.decode(), name.decode(), deleted, previous, value


def seal(rows: Iterable[Row], chain: int) -> list[SealedRow]:
    """Add checksums to rows; `chain` is that of the row before the first."""
    sealed: list[SealedRow] = []
    for revision, resource, namespace, name, deleted, previous, value in rows:
        head = head_of(revision, resource.encode(), namespace.encode(), name.encode(), deleted, previous)
        checksum = crc32(value, head)
        chain = link(chain, checksum)
        sealed.append((revision, resource, namespace, name, deleted, previous, head, checksum, chain, value))
    return sealed


def meta_checksum(meta: Mapping[str, int]) -> int:
    """Checksum of all other entries of the table `meta`."""
    entries = [f"{name}={meta[name]}" for name in sorted(meta) if name != "checksum"]
    return crc32("\n".join(entries).encode())


def is_full(error: Exception) -> bool:
    """Whether a write failed because the disk is full."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def first_meta() -> dict[str, int]:
    """Metadata of a new store. `identity` distinguishes it from every other one."""
    return {
        "schema": SCHEMA_VERSION,
        "identity": secrets.randbits(62),
        "compacted": 0,
        "standing": 0,
        "chain": 0,
    }


def write_meta(connection: sqlite3.Connection, meta: Mapping[str, int]) -> None:
    entries = {**meta, "checksum": meta_checksum(meta)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())


def insert_sealed(connection: sqlite3.Connection, rows: Sequence[SealedRow]) -> None:
    # A few statements, for sizes that are powers of two, are prepared once and reused.
    size = 1 << (len(rows) - 1).bit_length()
    values: list[object] = list(chain.from_iterable(rows))
    values.extend([None] * (COLUMNS * (size - len(rows))))
    connection.execute(_insert_statement(size), values)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes
    return connection


@cache
def _insert_statement(size: int) -> str:
    # Padding rows have no revision and are left out.
    values = ",".join(["(?,?,?,?,?,?,?,?,?,?)"] * size)
    return f"INSERT INTO log SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"  # noqa: S608 - no input in it
