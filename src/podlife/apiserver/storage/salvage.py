"""Saves the trustworthy part of a damaged store into a backup, and lists the rest.

For an operator without a backup: the rest is lost, and `restore` makes that true for every client. An object that was
changed or deleted in a lost row may come back in its earlier state. The damaged store is only read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podlife.apiserver.storage.checksums import seal
from podlife.apiserver.storage.data_dir import DataDir, whole_file
from podlife.apiserver.storage.database import Database, ReadRow, first_meta, insert_sealed, write_meta
from podlife.apiserver.storage.high_water_mark import read_mark
from podlife.apiserver.storage.state import Row
from podlife.apiserver.storage.store import StoreError
from podlife.apiserver.storage.verification import judge, title_of
from podlife.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SalvageReport:
    path: Path
    records: int
    # One line for each change that could not be saved.
    lost: tuple[str, ...]


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
    """Write a backup of everything in a damaged store that matches its checksums.

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
            _write(partial, saved)
    finally:
        data.release()
    return SalvageReport(target, len(saved.standing), tuple(saved.lost))


def _write(path: Path, saved: _Salvage) -> None:
    Database.create(path)
    rows = sorted(saved.standing.values(), key=lambda row: row[0])
    with closing(Database(path, writes=True)) as database, database.transaction():
        meta = first_meta() | {"compacted": saved.revision}
        for row in rows:
            (sealed,) = seal([_as_written(row)], meta["chain"])
            insert_sealed(database.connection, [sealed])
            *_, checksum, meta["chain"], _ = sealed
            meta["standing"] += checksum
        write_meta(database.connection, meta)


def _as_written(row: ReadRow) -> Row:
    revision, resource, namespace, name, deleted, previous, *_, value = row
    return revision, resource.decode(), namespace.decode(), name.decode(), deleted, previous, value
