"""Backup, restore and check of a store's files.

All three work beside a running server, from another process too: they read one consistent state of the log.
They block, print nothing, and say what they found or did in a small report.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.folder import DataFolder, sync_folder
from podlife.apiserver.storage.state import Row
from podlife.apiserver.storage.store import StoreError
from podlife.errors import ConfigError

__all__ = ["BackupReport", "CheckReport", "RestoreReport", "backup", "check", "restore"]

# What happened after a backup is forgotten by a restore, but not by the clients that saw it. Their revisions
# must not come to mean something else: the restored store goes on from one that the lost time did not reach.
RESTORE_SKIPS = 1_000_000
PROBLEMS_KEPT = 100
# What a file system says that knows no second name of a file.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


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


@dataclass(frozen=True, slots=True)
class CheckReport:
    """`skipped` counts revisions that were never written, as a refused transaction leaves them."""

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


def backup(folder: Path, target: Path) -> BackupReport:
    """Copy the store of a data folder into one file, as it stands now.

    Raises ConfigError when there is no store or the target exists, StoreError when it cannot be written."""
    if target.exists() or target.is_symlink():
        raise ConfigError(f"{target} exists already: a backup never overwrites")
    with closing(_open(folder)) as source, _partial(target) as partial:
        _copy(source, partial)
    with closing(Database(target)) as copy:
        return BackupReport(target, copy.revision(), _count_records(copy), target.stat().st_size)


def restore(source: Path, folder: Path) -> RestoreReport:
    """Make a store out of a backup, in a folder that has none. Its history begins anew, a good way on.

    Raises ConfigError when the folder is in use or holds a store, StoreError when the backup is not sound."""
    # What cannot be a backup is refused before a folder is made for it.
    _open(source).close()
    data = DataFolder(folder)
    data.claim()
    try:
        if data.database.exists():
            raise ConfigError(f"{folder} holds a store already: restore into an empty folder")
        report = check(source)
        if not report.is_sound:
            raise StoreError(f"{source} is not sound, nothing was restored: {report.problems[0]}")
        with closing(_open(source)) as original, _partial(data.database) as partial:
            _copy(original, partial)
            with closing(Database.open(partial)) as copy:
                copy.compact(report.compacted, report.revision + RESTORE_SKIPS)
                return RestoreReport(folder, copy.revision(), _count_records(copy))
    finally:
        data.release()


def check(path: Path) -> CheckReport:
    """Read a whole store (a data folder, or a backup) and say everything that is wrong with it.

    Raises ConfigError when there is none, StoreError when the file is not a store at all."""
    with closing(_open(path)) as database:
        inspection = _Inspection(database.compacted())
        connection = database.connection
        try:
            # One transaction: a running server may write on, what is read stays as it was.
            connection.execute("BEGIN")
            for (finding,) in connection.execute("PRAGMA integrity_check"):
                if finding != "ok":
                    inspection.note(f"SQLite: {finding}")
            inspection.compacted = database.compacted()
            for row in database.rows():
                inspection.visit(row)
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            inspection.note(f"SQLite: {error}")
        return inspection.report(database.path)


class _Metadata(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Value(msgspec.Struct):
    metadata: _Metadata


class _Inspection:
    """Replays the log and holds it against its own rules."""

    def __init__(self, compacted: int) -> None:
        self.compacted = compacted
        self._problems: list[str] = []
        self._standing: dict[tuple[str, str, str], int] = {}
        self._revision = 0
        self._events = 0
        self._decoder = msgspec.json.Decoder(_Value)

    def note(self, problem: str) -> None:
        if len(self._problems) < PROBLEMS_KEPT:
            self._problems.append(problem)

    def visit(self, row: Row) -> None:
        revision, resource, namespace, name, deleted, previous, value = row
        key = (resource, namespace, name)
        title = f"revision {revision} ({resource} {namespace}{'/' if namespace else ''}{name})"
        found = self._standing.get(key, 0)
        if revision <= 0:
            self.note(f"{title} is not a revision")
        elif revision > self.compacted:
            self._events += 1
            if previous != found:
                self.note(f"{title} follows revision {previous}, but {found} stood there")
            if deleted and not found:
                self.note(f"{title} removes what was not there")
        elif deleted or found:
            self.note(f"{title} should have been compacted")
        if deleted:
            self._standing.pop(key, None)
        else:
            self._standing[key] = revision
        self._revision = revision
        self._visit_value(title, revision, value)

    def report(self, path: Path) -> CheckReport:
        revision = max(self._revision, self.compacted)
        return CheckReport(
            path=path,
            revision=revision,
            compacted=self.compacted,
            records=len(self._standing),
            events=self._events,
            skipped=revision - self.compacted - self._events,
            problems=tuple(self._problems),
        )

    def _visit_value(self, title: str, revision: int, value: bytes) -> None:
        try:
            stated = self._decoder.decode(value).metadata.resource_version
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError) as error:
            self.note(f"{title} holds no object: {error}")
            return
        if stated != str(revision):
            self.note(f"{title} holds an object that says its resourceVersion is {stated!r}")


def _open(path: Path) -> Database:
    file = DataFolder(path).database if path.is_dir() else path
    if not path.exists():
        raise ConfigError(f"there is no store in {path}: it does not exist")
    if not file.is_file():
        raise ConfigError(f"there is no store in {path}")
    return Database(file)


def _copy(source: Database, target: Path) -> None:
    with closing(sqlite3.connect(target)) as copy:
        source.connection.backup(copy)
        # A copy is one file: it needs no log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """A file that takes the target's name once it is whole and durable, and is removed if it never is.

    It holds secrets, maybe in a folder where others write too: so it has a name that nobody can foresee, is made
    anew for its owner only, and never takes the place of another file."""
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield partial
            os.fsync(descriptor)
            _publish(partial, target)
            sync_folder(target.parent)
        finally:
            os.close(descriptor)
    except FileExistsError:
        raise ConfigError(f"{target} exists already: it is never overwritten") from None
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{target} could not be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _publish(partial: Path, target: Path) -> None:
    try:
        # Unlike a rename it fails where something has come to stand meanwhile.
        os.link(partial, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        partial.rename(target)


def _count_records(database: Database) -> int:
    row = database.connection.execute(
        "SELECT count(*) FROM log WHERE NOT deleted AND revision NOT IN (SELECT previous FROM log)"
    ).fetchone()
    return int(row[0])
