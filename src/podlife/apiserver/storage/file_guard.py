"""Detects when another process removes, replaces or writes the files of a store that is in use.

SQLite keeps writing to files that were unlinked, and over content that it did not write, without an error: the next
process could not read what was acknowledged. So the writer calls `stat` on both files before it writes and again before
it acknowledges. Nothing may have changed between its own writes; if something has, the log is verified as at a start,
because a changed time alone (`touch`) does no harm.

It does not open the files: closing them would release the locks that SQLite holds on them in this process.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from typing import NamedTuple

from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.records import StoreError
from podlife.apiserver.storage.verification import Verification


class _FileState(NamedTuple):
    inode: int
    device: int
    size: int
    changed: int


_MISSING = _FileState(0, 0, 0, 0)


class FileGuard:
    """Used only by the thread that writes to `database`. Methods return the problem; empty if there is none."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._identity = database.meta()["identity"]
        self._path = os.fspath(database.path.absolute())
        self._wal = f"{self._path}-wal"
        self._seen = self._seen_wal = _MISSING
        self.remember()

    def remember(self) -> None:
        """Record the files' current state as written by this process."""
        self._seen, self._seen_wal = _state_of(self._path), _state_of(self._wal)

    def find_change(self) -> str:
        """Before a write: what another process has done to the files."""
        now, wal = _state_of(self._path), _state_of(self._wal)
        if (now, wal) == (self._seen, self._seen_wal):
            return ""
        problem = self._find_loss(now, wal)
        if not problem and wal.size < self._seen_wal.size:
            problem = "store.db-wal was truncated while the server was running"
        if not problem and (found := self._find_damage(is_thorough=True)):
            problem = f"store.db was changed while the server was running: {found}"
        self._seen, self._seen_wal = now, wal
        return problem

    def find_loss(self) -> str:
        """After a write, before it is acknowledged: why the next process would not find it."""
        now, wal = _state_of(self._path), _state_of(self._wal)
        problem = self._find_loss(now, wal)
        # The database itself is written only by a checkpoint, once in 2,000 pages.
        if not problem and now != self._seen and (found := self._find_damage(is_thorough=False)):
            problem = f"store.db was changed while the server was running: {found}"
        self._seen, self._seen_wal = now, wal
        return problem

    def _find_loss(self, now: _FileState, wal: _FileState) -> str:
        if problem := _problem("store.db", self._seen, now):
            return problem
        if now.size < self._seen.size:
            # The file never shrinks: SQLite reuses free pages.
            return f"store.db was {'truncated' if now.size else 'emptied'} while the server was running"
        # SQLite creates the write-ahead log with the first write.
        return "" if self._seen_wal == _MISSING else _problem("store.db-wal", self._seen_wal, wal)

    def _find_damage(self, *, is_thorough: bool) -> str:
        connection = self._database.connection
        try:
            # Without its cache the connection reads the files again.
            connection.execute("PRAGMA shrink_memory")
            meta = self._database.meta()
            if meta.get("identity") != self._identity:
                return "it is of another cluster"
            if not is_thorough:
                return ""
            verification = Verification(meta)
            deque(verification.trusted(self._database.rows()), maxlen=0)
        except (sqlite3.Error, StoreError) as error:
            return str(error)
        if verification.verdict().fatal or verification.problems:
            return "it is damaged"
        return "" if verification.chain == self._database.chain else "it does not end with the newest change"


def _state_of(path: str) -> _FileState:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, twice for every transaction
    except OSError:
        return _MISSING
    return _FileState(found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns)


def _problem(name: str, seen: _FileState, now: _FileState) -> str:
    if now[:2] == seen[:2]:
        return ""
    return f"{name} was {'removed' if now is _MISSING else 'replaced'} while the server was running"
