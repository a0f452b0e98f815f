"""Backup, restore, check and salvage of a store's files.

The first three work beside a running server, from another process too: they read one consistent state of the log. All
of them block, print nothing, and return a small report.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podlife.apiserver.storage.data_dir import DataDir, whole_file
from podlife.apiserver.storage.database import (
    Database,
    ReadRow,
    as_written,
    first_meta,
    insert_sealed,
    seal,
    write_meta,
)
from podlife.apiserver.storage.high_water_mark import HighWaterMark, MarkFile, MarkReading, read_mark
from podlife.apiserver.storage.records import StoreError
from podlife.apiserver.storage.sqlite import upgrade
from podlife.apiserver.storage.verification import Inspection, Verification, judge, title_of
from podlife.errors import ConfigError

# Clients may have seen revisions after the backup. A restored store must not reuse them: it continues at a revision
# that was not reached.
RESTORE_SKIPS = 1_000_000


@dataclass(frozen=True, slots=True)
class BackupReport:
    path: Path
    revision: int
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RestoreReport:
    folder: Path
    revision: int
    records: int
    # Where the remains of the previous store have been moved.
    remains: Path | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """`skipped` counts revisions that were never written, as a failed transaction leaves them."""

    path: Path
    revision: int
    compacted: int
    records: int
    events: int
    skipped: int
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class SalvageReport:
    path: Path
    records: int
    # One line for each change that could not be saved.
    lost: tuple[str, ...]


def backup(folder: Path, target: Path) -> BackupReport:
    """Copy the current store of a data folder into one file.

    Raises ConfigError if there is no store or the target exists, StoreError if the store is damaged or the target
    cannot be written.
    """
    if target.exists() or target.is_symlink():
        raise ConfigError(f"{target} exists already: a backup never overwrites")
    with closing(_open(folder)) as source, whole_file(target) as partial:
        _copy(source, partial)
        report = check(partial)
        if not report.is_sound:
            raise StoreError(f"{folder} is damaged, nothing was backed up: {report.problems[0]}")
    return BackupReport(target, report.revision, report.records, target.stat().st_size)


def restore(source: Path, folder: Path) -> RestoreReport:
    """Create a store from a backup, in a folder that has none or only the remains of one, which are moved into a
    folder beside it. The restored history begins well after every revision that the folder is known to have served: a
    client must not resume an earlier watch in the new history.

    Raises ConfigError if the folder is in use or holds a sound store, StoreError if the backup is not sound.
    """
    # Anything that cannot be a backup is rejected before a folder is created for it.
    _open(source).close()
    data = DataDir(folder)
    data.claim()
    try:
        if data.has_store and _is_sound(folder):
            raise ConfigError(f"{folder} holds a store already: restore into an empty folder")
        report = check(source)
        if not report.is_sound:
            raise StoreError(f"{source} is not sound, nothing was restored: {report.problems[0]}")
        with closing(_open(source)) as original, whole_file(data.database) as partial:
            _copy(original, partial)
            upgrade(partial)
            mark = read_mark(data.mark).mark
            newest = max(report.revision, mark.revision if mark is not None else 0)
            with closing(Database(partial, writes=True)) as copy:
                copy.compact(report.compacted, newest + RESTORE_SKIPS)
                restored = copy.revision()
            remains = data.set_aside()
        with closing(Database(data.database)) as database:
            mark = HighWaterMark(database.meta()["identity"], database.revision(), database.newest_chain())
        MarkFile(data.mark, mark).close()
        return RestoreReport(folder, restored, report.records, remains)
    finally:
        data.release()


def check(path: Path) -> CheckReport:
    """Read a whole store (a data folder, or a backup) and report everything that is wrong with it.

    Raises ConfigError if there is none, StoreError if the file is not a store at all.
    """
    # Read first: a running server keeps writing, and the mark is never ahead of the log.
    mark = read_mark(DataDir(path).mark) if path.is_dir() else MarkReading(None)
    with closing(_open(path)) as database:
        inspection = Inspection(0)
        try:
            # One transaction: a running server may keep writing without affecting what is read.
            database.connection.execute("BEGIN")
            for (finding,) in database.connection.execute("PRAGMA integrity_check"):
                if finding != b"ok":
                    inspection.note(f"SQLite: {finding.decode(errors='replace')}")
            _inspect(database, inspection, mark)
            database.connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            inspection.note(f"SQLite: {error}")
        return CheckReport(
            path=database.path,
            revision=inspection.revision,
            compacted=inspection.compacted,
            records=inspection.records,
            events=inspection.events,
            skipped=inspection.revision - inspection.compacted - inspection.events,
            problems=tuple(inspection.problems),
        )


def _inspect(database: Database, inspection: Inspection, mark: MarkReading) -> None:
    try:
        meta = database.meta()
    except StoreError as error:
        inspection.note(str(error))
        return
    inspection.compacted = inspection.revision = meta["compacted"]
    if not database.has_checksums:
        for row in database.rows():
            inspection.visit(row)
        return
    verification = Verification(meta)
    deque(verification.trusted(_visited(database, inspection)), maxlen=0)
    for damaged in verification.damaged.values():
        inspection.note(f"{damaged.title} is damaged: it does not match its checksum")
    loss = mark.find_loss(meta["identity"], verification.revision, database.chain_at)
    for problem in (*verification.problems, loss, mark.problem):
        if problem:
            inspection.note(problem)


def _visited(database: Database, inspection: Inspection) -> Iterator[ReadRow]:
    for row in database.rows():
        inspection.visit(row)
        yield row


def _is_sound(folder: Path) -> bool:
    try:
        return check(folder).is_sound
    except StoreError:
        return False


def _open(path: Path) -> Database:
    if not path.exists():
        raise ConfigError(f"there is no store in {path}: it does not exist")
    if not path.is_dir():
        return Database(path)
    folder = DataDir(path)
    folder.refuse_lost_store()
    if not folder.has_store:
        raise ConfigError(f"there is no store in {path}")
    return Database(folder.database)


def _copy(source: Database, target: Path) -> None:
    with closing(sqlite3.connect(target)) as copy:
        source.connection.backup(copy)
        # A copy is one file: it needs no write-ahead log.
        copy.execute("PRAGMA journal_mode = DELETE")


class _Salvage:
    """Replays the readable rows, oldest first."""

    def __init__(self) -> None:
        self.standing: dict[tuple[bytes, bytes, bytes], ReadRow] = {}
        self.lost: list[str] = []
        self.revision = 0

    def visit(self, row: ReadRow) -> None:
        revision, resource, namespace, name, deleted, *_ = row
        is_whole, is_named = judge(row)
        key = (resource, namespace, name)
        self.revision = max(self.revision, revision)
        if is_named:
            # The previous version is superseded even if its successor is lost.
            self.standing.pop(key, None)
        if is_whole and not deleted:
            self.standing[key] = row
        elif not is_whole:
            self.lost.append(f"{title_of(revision, *key)} is damaged")

    def read(self, database: Database) -> None:
        """Read from both ends towards the unreadable part."""
        try:
            for row in database.rows():
                self.visit(row)
        except sqlite3.DatabaseError as error:
            self.lost.append(f"rows after revision {self.revision} cannot be read: {error}")
            for row in reversed(list(_backwards(database, self.revision))):
                self.visit(row)


def _backwards(database: Database, revision: int) -> Iterator[ReadRow]:
    try:
        yield from database.rows(after=revision, is_reversed=True)
    except sqlite3.DatabaseError:
        return


def salvage(folder: Path, target: Path) -> SalvageReport:
    """Write a backup of everything in a damaged store that matches its checksums, for an operator without a backup.

    The rest is lost after a `restore`: an object that was changed or deleted in a lost row may come back in its earlier
    state. The damaged store is only read.

    Raises ConfigError if a process uses the folder or the target exists, StoreError if nothing can be saved.
    """
    data = DataDir(folder)
    data.refuse_lost_store()
    if not data.has_store:
        raise ConfigError(f"there is no store in {folder}")
    data.claim()
    try:
        saved = _Salvage()
        with closing(Database(data.database)) as database:
            if not database.has_checksums:
                raise StoreError(f"{data.database} has no checksums, so damage cannot be located")
            saved.read(database)
        mark = read_mark(data.mark).mark
        if mark is not None and mark.revision > saved.revision:
            saved.lost.append(f"revisions {saved.revision + 1} to {mark.revision} are missing")
            saved.revision = mark.revision
        with whole_file(target) as partial:
            _write_salvaged(partial, saved)
    finally:
        data.release()
    return SalvageReport(target, len(saved.standing), tuple(saved.lost))


def _write_salvaged(path: Path, saved: _Salvage) -> None:
    Database.create(path)
    rows = sorted(saved.standing.values(), key=lambda row: row[0])
    with closing(Database(path, writes=True)) as database, database.transaction():
        meta = first_meta() | {"compacted": saved.revision}
        for row in rows:
            (sealed,) = seal([as_written(row)], meta["chain"])
            insert_sealed(database.connection, [sealed])
            *_, checksum, meta["chain"], _ = sealed
            meta["standing"] += checksum
        write_meta(database.connection, meta)
