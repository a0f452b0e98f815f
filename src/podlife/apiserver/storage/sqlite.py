"""Durable store: SQLite in WAL mode, synchronous, with group commit.

Reads come from memory and never wait. A change is checked and encoded on the event loop, made durable by the writer's
thread, and only then applied, published and acknowledged, in the order of revisions. If a write fails, every commit
of the transaction fails, its revisions are skipped, and the next transaction tries again.

Opening a store loads its files into memory, and rejects files that fail verification. They are opened read-only
until all of them have been verified: a rejection leaves them unchanged, including the write-ahead log that SQLite would
otherwise checkpoint and remove.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from podlife.apiserver.storage.data_dir import DataDir
from podlife.apiserver.storage.database import (
    LOG,
    ROWS_PER_STATEMENT,
    Database,
    NotAStoreError,
    as_written,
    first_meta,
    insert_sealed,
    is_full,
    seal,
    write_meta,
)
from podlife.apiserver.storage.high_water_mark import HighWaterMark, MarkFile, MarkReading, read_mark
from podlife.apiserver.storage.records import (
    DISK_FULL,
    Change,
    Key,
    Record,
    StoreError,
    StoreFullError,
    StoreLostError,
)
from podlife.apiserver.storage.store import HistoryLimits, Store
from podlife.apiserver.storage.verification import DamageAssessment, Inspection, Verification
from podlife.apiserver.storage.writer import Commit, CommitWriter, DiskReserve, StoreFiles

log = logging.getLogger(__name__)


class SqliteStore(Store):
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
            # Keys are removed in the order in which commits settle: the last one is the newest.
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
        mark = _load_verified(self._folder, self, now)
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


def _load_verified(folder: DataDir, store: Store, now: float) -> HighWaterMark:
    """Fill a store from its folder, created or upgraded if needed; returns the high-water mark. Raises StoreError if
    the files cannot be trusted."""
    folder.ensure_database()
    try:
        Database.undo_interrupted(folder.database)
        is_upgraded = upgrade(folder.database)
        reading = MarkReading(None) if is_upgraded else read_mark(folder.mark)
        with closing(Database(folder.database)) as database:
            mark = _fill(folder, database, reading, store, now)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder.database} cannot be read: {error}; {_what_to_do(folder)}") from error
    except NotAStoreError as error:
        raise StoreError(f"{error}; {_what_to_do(folder)}") from error
    if reading.problem and mark.revision:
        log.warning("%s", reading.problem)
    for title in store.set_aside:
        log.warning("%s in %s is damaged and was set aside", title, folder.database)
    return mark


def _fill(
    folder: DataDir, database: Database, reading: MarkReading, store: Store, now: float
) -> HighWaterMark:
    meta = database.meta()
    verification = Verification(meta)
    store.load(meta["compacted"], verification.trusted(database.rows()), now)
    verdict = verification.verdict()
    loss = reading.find_loss(meta["identity"], verification.revision, database.chain_at)
    _refuse_damage(folder, verification, verdict, loss)
    if verdict.set_aside:
        # A damaged row leaves a gap in the history, which starts after the last of them.
        rows = Verification(meta).trusted(database.rows())
        store.load(max(meta["compacted"], verdict.history_lost_until), rows, now)
        store.set_aside = [row.title for row in verdict.set_aside]
    return HighWaterMark(meta["identity"], verification.revision, verification.chain)


def _refuse_damage(folder: DataDir, verification: Verification, verdict: DamageAssessment, loss: str) -> None:
    # Damage to a single row may break the chain as well; the row is the better explanation.
    problems = [f"{row.title} does not match its checksum" for row in verdict.fatal]
    problems += [*verification.problems, *([loss] if loss else [])]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StoreError(f"{folder.database} is damaged: {problems[0]}{more}; {_what_to_do(folder)}")


def _what_to_do(folder: DataDir) -> str:
    command, data = "podlife apiserver", f"--data {folder.path}"
    return (
        f"`{command} check {data}` shows all of it, `{command} restore FILE {data}` replaces it by a backup; without "
        f"one, `{command} salvage FILE {data}` writes a backup of what is sound"
    )


def upgrade(path: Path) -> bool:
    """Upgrade a store of the earlier format, without checksums, and return whether it was one.

    Damage that the earlier format cannot show (a flipped byte inside a text) gets a checksum like everything else.
    Raises StoreError if the log breaks a rule; the file is then unchanged.
    """
    with closing(Database(path)) as database:
        if database.has_checksums:
            return False
        inspection = Inspection(database.compacted())
        for row in database.rows():
            inspection.visit(row)
    if inspection.problems:
        raise StoreError(f"{path} is damaged, nothing was upgraded: {inspection.problems[0]}")
    try:
        with closing(Database(path, writes=True)) as database, database.transaction():
            _add_checksums(database.connection, inspection.compacted)
    except sqlite3.Error as error:
        raise StoreError(f"{path} could not be upgraded and is as it was: {error}") from error
    return True


def _add_checksums(connection: sqlite3.Connection, compacted: int) -> None:
    connection.execute("ALTER TABLE log RENAME TO old_log")
    connection.execute(LOG)
    rows = connection.execute(
        "SELECT revision, resource, namespace, name, deleted, previous, value FROM old_log ORDER BY revision"
    )
    meta = first_meta() | {"compacted": compacted}
    chain = 0
    while some := [as_written(row) for row in islice(rows, ROWS_PER_STATEMENT)]:
        sealed = seal(some, chain)
        insert_sealed(connection, sealed)
        for revision, *_, checksum, chain, _ in sealed:
            if revision <= compacted:
                meta["standing"] += checksum
                meta["chain"] = chain
    connection.execute("DROP TABLE old_log")
    write_meta(connection, meta)
