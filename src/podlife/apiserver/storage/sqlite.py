"""Durable store: SQLite in WAL mode, synchronous, with group commit.

Reads come from memory and never wait. A change is checked and encoded on the event loop, made durable by the writer's
thread, and only then applied, published and acknowledged, in the order of revisions. If a write fails, every commit
of the transaction fails, its revisions are skipped, and the next transaction tries again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from podlife.apiserver.storage.data_dir import DataDir
from podlife.apiserver.storage.database import Database, is_full
from podlife.apiserver.storage.disk_reserve import DiskReserve
from podlife.apiserver.storage.high_water_mark import MarkFile
from podlife.apiserver.storage.loader import load
from podlife.apiserver.storage.state import HistoryLimits, StoreState
from podlife.apiserver.storage.store import (
    DISK_FULL,
    Change,
    Key,
    Record,
    StoreError,
    StoreFullError,
    StoreLostError,
)
from podlife.apiserver.storage.writer import Commit, CommitWriter, StoreFiles


class SqliteStore(StoreState):
    def __init__(self, folder: DataDir, limits: HistoryLimits | None = None) -> None:
        """Use `open`, which also locks the folder and loads the store."""
        super().__init__(limits)
        self._folder = folder
        self._database: Database
        self._writer: CommitWriter
        # The last assigned revision, including changes that are not durable yet.
        self._assigned = 0
        self._in_flight: dict[Key, Commit] = {}

    @classmethod
    async def open(cls, path: Path, *, limits: HistoryLimits | None = None) -> SqliteStore:
        """Open the store in a folder, or create one if the folder was never used. Raises ConfigError if the folder
        cannot be used or another process uses it, StoreError if its store is lost or damaged."""
        folder = DataDir(path)
        folder.claim()
        try:
            store = cls(folder, limits)
            disk = await asyncio.to_thread(store._load, asyncio.get_running_loop().time())
            store._writer = CommitWriter(disk, store._settle)
        except BaseException:
            folder.release()
            raise
        store._writer.start()
        return store

    async def commit(self, *changes: Change) -> Sequence[Record]:
        self.refuse_when_closed()
        if not changes and self._in_flight:
            # Keys are removed when they are settled, in order: the last one is the newest.
            await self._settled(next(reversed(self._in_flight.values())))
        while (earlier := self._first_in_flight(changes)) is not None:
            await self._settled(earlier)
            self.refuse_when_closed()
        events = self.prepare(changes, self._assigned)
        if not events:
            return ()
        commit = Commit(events, asyncio.get_running_loop().create_future())
        self._assigned += len(events)
        for event in events:
            self._in_flight[event.record.key] = commit
        self._writer.submit(commit)
        return await commit.done

    @property
    def trouble(self) -> str:
        return self._writer.lost or (DISK_FULL if self._writer.is_full else "")

    async def close(self) -> None:
        self.end()
        await self._writer.stop()
        self._folder.release()

    def _load(self, now: float) -> StoreFiles:
        mark = load(self._folder, self, now)
        self._assigned = self.revision
        reserve = DiskReserve(self._folder.reserve)
        try:
            reserve.take()
            self._database = Database.open(self._folder.database)
            return StoreFiles(self._database, MarkFile(self._folder.mark, mark), reserve)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._folder.database} cannot be opened: {error}") from error

    def _first_in_flight(self, changes: Sequence[Change]) -> Commit | None:
        for change in changes:
            commit = self._in_flight.get(change.key)
            if commit is not None:
                return commit
        return None

    async def _settled(self, commit: Commit) -> None:
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commit.followers.append(follower)
        await follower

    def _settle(self, group: list[Commit], failure: Exception | None) -> None:
        """The group is durable, or has failed: apply it and wake its waiters."""
        events = [event for commit in group for event in commit.events]
        for event in events:
            self._in_flight.pop(event.record.key, None)
        if failure is None:
            self.apply(events)
            self._writer.compact_until = self._compacted
        for commit in group:
            if commit.done.done():
                # Its caller was cancelled; the change is applied nevertheless.
                pass
            elif failure is None:
                commit.done.set_result([event.record for event in commit.events])
            else:
                commit.done.set_exception(self._refusal(failure))
            for follower in commit.followers:
                if not follower.done():
                    follower.set_result(None)

    def _refusal(self, failure: Exception) -> StoreError:
        kind = StoreFullError if is_full(failure) else StoreError
        if isinstance(failure, StoreFullError | StoreLostError):
            kind = type(failure)
        error = kind(f"the change could not be written to {self._folder.database}: {failure}")
        error.__cause__ = failure
        return error
