"""Writer thread: group commit.

Commits that arrive while a transaction is being written share the next one, and its one fsync. The event loop is
notified of a group when it is durable, or has failed as a whole; groups are written and reported in the order of
their revisions. Between groups the log is compacted, a little at a time.

When the disk is full, the reserve is released, and until there is room again every commit that creates an object is
refused. Changes and removals continue: nodes stay ready, and objects can be deleted to make room.

When the files are removed, replaced or damaged under it, every commit is refused until the server is restarted;
acknowledged objects stay readable from memory.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from podlife.apiserver.storage.database import WAL_PAGES, WAL_PAGES_WHEN_FULL, Database, is_full
from podlife.apiserver.storage.file_guard import FileGuard
from podlife.apiserver.storage.high_water_mark import MarkFile
from podlife.apiserver.storage.records import Event, EventType, Record, Row, StoreFullError, StoreLostError

# Large enough to amortize the fsync, small enough that the first commit of a group does not wait for long.
GROUP_ROWS = 256
GROUP_BYTES = 4 << 20
COMPACT_REVISIONS = 1_000
COMPACT_REVISIONS_WHEN_FULL = 50
# This much free space inside the database is enough for new objects, even if its file cannot grow.
ROOM_BYTES = 4 << 20
# 16 MB to checkpoint the write-ahead log; the rest is enough to delete an object of the largest size, whose last state
# is written to both.
RESERVE_BYTES = 24 << 20
# Additional free space required before the reserve is allocated again.
MARGIN_BYTES = 4 << 20

logger = logging.getLogger(__name__)


class DiskReserve:
    """Reserved disk space, since even a deletion has to be written: allocated in advance, in a file without content,
    and released when the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self.is_spent = True

    def take(self) -> None:
        """Reserve the space for the first time: on a small disk half of the free space."""
        disk = os.statvfs(self._path.parent)
        self._size = min(RESERVE_BYTES, disk.f_bavail * disk.f_frsize // 2)
        self._allocate()

    def take_back(self) -> bool:
        """Reserve the space again once more than that is free; returns whether it is reserved."""
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < self._size + MARGIN_BYTES:
            return False
        self._allocate()
        return not self.is_spent

    def spend(self) -> None:
        self.is_spent = True
        with suppress(OSError):
            self._path.unlink()

    def _allocate(self) -> None:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                # On file systems that cannot allocate, the C library writes the blocks instead.
                os.posix_fallocate(file, 0, max(1, self._size))
            finally:
                os.close(file)
        except OSError:
            self.spend()
        else:
            self.is_spent = False


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Files of a store that is written to."""

    database: Database
    mark: MarkFile
    reserve: DiskReserve


class Commit:
    """Changes on their way to the disk, and their waiters."""

    __slots__ = ("creates", "done", "events", "followers")

    def __init__(self, events: Sequence[Event], done: asyncio.Future[Sequence[Record]]) -> None:
        self.events = events
        self.creates = any(event.type is EventType.ADDED for event in events)
        self.done = done
        # Commits on the same keys, which wait for the outcome of this one.
        self.followers: list[asyncio.Future[None]] = []


class CommitWriter:
    """Writes commits to files that it owns from `start` on. `settle` is called on the event loop with every group and
    its error, if any."""

    def __init__(self, disk: StoreFiles, settle: Callable[[list[Commit], Exception | None], None]) -> None:
        self._database, self._mark, self._reserve = disk.database, disk.mark, disk.reserve
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Commit | None] = SimpleQueue()
        self._is_ending = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # Whether the disk is too full for new objects; set by the thread, read by the event loop.
        self.is_full = False
        # What happened to the files, permanently; set by the thread, read by the event loop.
        self.lost = ""
        self._guard = FileGuard(self._database)
        self._compacted = self._database.compacted()
        self._revision = self._compacted
        # How far the log may be compacted; set by the event loop, read by the thread.
        self.compact_until = self._compacted
        # An unfinished write is not acknowledged, so it need not keep a dying process alive.
        self._thread = Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, commit: Commit) -> None:
        self._queue.put(commit)

    async def stop(self) -> None:
        """Write what was submitted, close the database and end the thread."""
        if not self._ended.done():
            self._queue.put(None)
        await asyncio.shield(self._ended)

    def _run(self) -> None:
        while group := self._take():
            for commits, failure in self._keep(group):
                self._call_on_loop(self._settle, commits, failure)
            self._compact()
        with suppress(sqlite3.Error):
            self._database.close()
        with suppress(OSError):
            self._mark.close()
        # A closed store needs no reserve.
        self._reserve.spend()
        self._call_on_loop(self._set_ended)

    def _keep(self, group: list[Commit]) -> list[tuple[list[Commit], Exception | None]]:
        """Write the commits that the disk has room for; returns commits with a common outcome, and the outcome."""
        if self.lost or self._is_lost(self._guard.find_change()):
            return [(group, StoreLostError(self.lost))]
        if self.is_full and self._has_room():
            self.is_full = False
            logger.warning("there is room for new objects in %s again", self._database.path)
        if not self.is_full:
            failure = self._write(group)
            if failure is None or not is_full(failure):
                return [(group, failure)]
            self._release_reserve(failure)
        refusal = StoreFullError("the disk is full: only changes and deletions of what exists are accepted")
        creating = [commit for commit in group if commit.creates]
        changing = [commit for commit in group if not commit.creates]
        ends: list[tuple[list[Commit], Exception | None]] = [(creating, refusal)] if creating else []
        if changing:
            ends.append((changing, self._write(changing)))
        return ends

    def _has_room(self) -> bool:
        """Free space on the disk, or within the database, whose file never shrinks."""
        try:
            if self._reserve.take_back():
                self._use_wal_pages(WAL_PAGES)
                return True
            return self._database.free_bytes() >= ROOM_BYTES
        except (OSError, sqlite3.Error):
            return False

    def _release_reserve(self, failure: Exception) -> None:
        self.is_full = True
        self._reserve.spend()
        logger.error(
            "the disk of %s is full (%s): objects can be changed and deleted, none can be created",
            self._database.path,
            failure,
        )
        # Not possible at the moment: the write-ahead log keeps its size.
        with suppress(sqlite3.Error):
            self._use_wal_pages(WAL_PAGES_WHEN_FULL)

    def _use_wal_pages(self, pages: int) -> None:
        try:
            self._database.use_wal_pages(pages)
        finally:
            self._guard.remember()

    def _is_lost(self, problem: str) -> bool:
        """Record the problem, once; return whether there is one."""
        if problem:
            self.lost = f"{problem}; writes are refused until the server is restarted"
            logger.error("%s: %s", self._database.path.parent, self.lost)
        return bool(problem)

    def _call_on_loop(self, call: Callable[..., None], *arguments: object) -> None:
        # The loop was closed before the store: no waiter is left.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _set_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _take(self) -> list[Commit]:
        """All waiting commits, up to the bounds of a group; empty at the end."""
        group: list[Commit] = []
        rows = size = 0
        while not self._is_ending:
            commit = self._queue.get()
            if commit is None:
                self._is_ending = True
                break
            group.append(commit)
            rows += len(commit.events)
            size += sum([len(event.record.value) for event in commit.events])
            if rows >= GROUP_ROWS or size >= GROUP_BYTES or self._queue.empty():
                break
        return group

    def _write(self, group: list[Commit]) -> Exception | None:
        rows = [_row(event) for commit in group for event in commit.events]
        try:
            self._database.insert(rows)
        except Exception as error:  # noqa: BLE001 - waiters must be notified of any error
            # SQLite may have written to its files before it failed: not a change by another process.
            self._is_lost(self._guard.find_loss())
            return error
        if self._is_lost(self._guard.find_loss()):
            return StoreLostError(self.lost)
        # A lagging mark detects less, and does no harm.
        with suppress(OSError):
            self._mark.move(rows[-1][0], self._database.chain)
        self._revision = rows[-1][0]
        return None

    def _compact(self) -> None:
        if self.lost:
            return
        until = self._compacted + COMPACT_REVISIONS
        if self.is_full:
            # Readers get their history from memory. On disk it takes space that deletions need.
            until = self._revision
            if until < self._compacted + COMPACT_REVISIONS_WHEN_FULL:
                return
        elif until > self.compact_until:
            return
        try:
            self._database.compact(self._compacted, until)
        except Exception as error:  # noqa: BLE001 - retried with the next group; writing must continue
            logger.warning("the history in %s could not be compacted: %s", self._database.path, error)
        else:
            self._compacted = until
        self._guard.remember()


def _row(event: Event) -> Row:
    record = event.record
    previous = 0 if event.previous is None else event.previous.revision
    return (record.revision, *record.key, event.type is EventType.DELETED, previous, record.value)
