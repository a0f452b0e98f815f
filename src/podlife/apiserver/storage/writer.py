"""The thread that writes: group commit.

Commits that arrive while a transaction is on its way to the disk share the next one, and its one fsync. The
event loop hears of a group when it is durable, or has failed as a whole; groups are written and told in the
order of their revisions. Between groups the log is compacted, a little at a time.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.state import Row
from podlife.apiserver.storage.store import Event, EventType, Record

__all__ = ["Commit", "Writer"]

# Large enough that the fsync hardly counts, small enough that the first of a group does not wait for long.
GROUP_ROWS = 256
GROUP_BYTES = 4 << 20
COMPACT_REVISIONS = 1_000

logger = logging.getLogger(__name__)


class Commit:
    """Changes on their way to the disk, and those who wait for them."""

    __slots__ = ("done", "events", "followers")

    def __init__(self, events: Sequence[Event], done: asyncio.Future[Sequence[Record]]) -> None:
        self.events = events
        self.done = done
        # Commits on the same keys, which must see first how this one ends.
        self.followers: list[asyncio.Future[None]] = []


class Writer:
    """Writes commits to a database that it owns from `start` on. `settle` is called on the event loop with
    every group and with what went wrong, if something did."""

    def __init__(self, database: Database, settle: Callable[[list[Commit], Exception | None], None]) -> None:
        self._database = database
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Commit | None] = SimpleQueue()
        self._is_ending = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._compacted = database.compacted()
        # How far the log may be compacted; set by the event loop, read by the thread.
        self.compact_until = self._compacted
        # An unfinished write is acknowledged to nobody, so it need not keep a dying process alive.
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
            failure = self._write(group)
            self._tell(self._settle, group, failure)
            if failure is None:
                self._compact()
        with suppress(sqlite3.Error):
            self._database.close()
        self._tell(self._tell_ended)

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        # A loop that was closed before the store leaves nobody to be told.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _tell_ended(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _take(self) -> list[Commit]:
        """Everything that waits, up to the bounds of a group; empty at the end."""
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
        try:
            self._database.insert([_row(event) for commit in group for event in commit.events])
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            return error
        return None

    def _compact(self) -> None:
        until = self._compacted + COMPACT_REVISIONS
        if until > self.compact_until:
            return
        try:
            self._database.compact(self._compacted, until)
        except Exception as error:  # noqa: BLE001 - the next group tries again; writing must go on
            logger.warning("the history in %s could not be compacted: %s", self._database.path, error)
        else:
            self._compacted = until


def _row(event: Event) -> Row:
    record = event.record
    previous = 0 if event.previous is None else event.previous.revision
    return (record.revision, *record.key, event.type is EventType.DELETED, previous, record.value)
