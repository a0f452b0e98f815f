"""Notices when the files of a store are removed, replaced or written to by somebody else while they are in use.

SQLite writes on into files that have lost their name, and over content that it did not write, without an error: what is
acknowledged then cannot be read by the next process. So the writer looks at both files (`stat`) before it writes and
again before it acknowledges. Between its own writes nothing may have changed; where something has, the log is verified
as at a start, because a changed time alone (`touch`) does no harm.

It does not open the files: closing them would end the locks that SQLite holds on them in this process.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from typing import NamedTuple

from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.records import StoreError
from podlife.apiserver.storage.verification import Verification


class _Look(NamedTuple):
    inode: int
    device: int
    size: int
    changed: int


_MISSING = _Look(0, 0, 0, 0)


class FileGuard:
    """Belongs to the thread that writes to `database`. Its methods return what is wrong, empty if nothing is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._identity = database.meta()["identity"]
        self._path = os.fspath(database.path.absolute())
        self._wal = f"{self._path}-wal"
        self._seen = self._seen_wal = _MISSING
        self.remember()

    def remember(self) -> None:
        """Take the files as they are for what this process has written."""
        self._seen, self._seen_wal = _look(self._path), _look(self._wal)

    def find_change(self) -> str:
        """Before a write: what somebody else has done to the files."""
        now, wal = _look(self._path), _look(self._wal)
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
        """After a write, before it is acknowledged: whether it is in files that the next process will find."""
        now, wal = _look(self._path), _look(self._wal)
        problem = self._find_loss(now, wal)
        # The database itself is written only when the write-ahead log is folded into it, once in 2,000 pages.
        if not problem and now != self._seen and (found := self._find_damage(is_thorough=False)):
            problem = f"store.db was changed while the server was running: {found}"
        self._seen, self._seen_wal = now, wal
        return problem

    def _find_loss(self, now: _Look, wal: _Look) -> str:
        if problem := _problem("store.db", self._seen, now):
            return problem
        if now.size < self._seen.size:
            # It never shrinks: SQLite uses free pages again.
            return f"store.db was {'truncated' if now.size else 'emptied'} while the server was running"
        # SQLite makes the write-ahead log with the first write.
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


def _look(path: str) -> _Look:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, twice for every transaction
    except OSError:
        return _MISSING
    return _Look(found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns)


def _problem(name: str, seen: _Look, now: _Look) -> str:
    if now[:2] == seen[:2]:
        return ""
    return f"{name} was {'removed' if now is _MISSING else 'replaced'} while the server was running"
