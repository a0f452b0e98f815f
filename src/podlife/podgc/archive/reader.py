"""Reads an archive: its entries, and one entry. Changes nothing and needs no lock.

`ArchiveReader` is the interface of a folder and of a bucket. An entry that cannot be read is returned with its path and
the reason, among the others.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from podlife.podgc.archive.archive import ArchiveError, EntryPath, stem_of
from podlife.podgc.archive.entry import DamagedError, Entry, Header, decode_entry, read_header
from podlife.podgc.archive.files import EntryFile, found_in, open_entry


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    place: EntryPath
    bytes: int
    modified_at: datetime
    header: Header


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """A file that cannot be read; without a file name, a namespace directory that cannot."""

    place: EntryPath
    why: str


class ArchiveReader(Protocol):
    def items(
        self, namespace: str = "", *, since: datetime | None = None, stem: str = "", uid: str = ""
    ) -> AsyncGenerator[ArchivedEntry | DamagedEntry, None]:
        """Entries in the order of their paths: of a namespace, since a time, with a file name prefix, with a UID. Only
        headers of matching entries are read. Raises ArchiveError."""

    async def read(self, place: EntryPath) -> Entry:
        """Raises DamagedError, or ArchiveError if it cannot be read."""

    async def close(self) -> None: ...


async def find(
    reader: ArchiveReader, wanted: str, namespace: str = ""
) -> Sequence[ArchivedEntry | DamagedEntry]:
    """Entries of the pod with this name or UID, newest first; unreadable ones that may match come last."""

    def age_order(each: ArchivedEntry | DamagedEntry) -> float:
        return each.modified_at.timestamp() if isinstance(each, ArchivedEntry) else 0.0

    for stem, uid in ((f"{stem_of(wanted)}_", ""), ("", wanted)):
        async with aclosing(reader.items(namespace, stem=stem, uid=uid)) as items:
            entries = [each async for each in items if _matches(each, wanted)]
        if entries:
            return sorted(entries, key=age_order, reverse=True)
    return []


def _matches(each: ArchivedEntry | DamagedEntry, wanted: str) -> bool:
    if each.place.uid == wanted or not each.place.file:
        return True
    return (
        each.header.name == wanted if isinstance(each, ArchivedEntry) else each.place.name == stem_of(wanted)
    )


class FolderReader:
    """Blocks on disk access: for commands that do nothing else meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ArchiveError(
                f"no archive in {path}: set its directory with --archive or PODLIFE_ARCHIVE"
            ) from None
        except OSError as error:
            raise ArchiveError(f"cannot read archive {path}: {error.strerror}") from None

    async def items(
        self, namespace: str = "", *, since: datetime | None = None, stem: str = "", uid: str = ""
    ) -> AsyncGenerator[ArchivedEntry | DamagedEntry, None]:
        unread: list[str] = []
        for found in self._found(namespace, unread):
            modified_at = datetime.fromtimestamp(found.modified_at, UTC)
            if not found.place.is_of(stem, uid) or (since is not None and modified_at < since):
                continue
            try:
                with open_entry(self._root, found.place) as file:
                    header = read_header(file)
            except FileNotFoundError:
                # Pruned meanwhile.
                continue
            except DamagedError as error:
                yield DamagedEntry(found.place, str(error))
            except OSError as error:
                yield DamagedEntry(found.place, error.strerror or str(error))
            else:
                yield ArchivedEntry(found.place, found.bytes, modified_at, header)
        for name in unread:
            yield DamagedEntry(EntryPath(name, ""), os.strerror(errno.EACCES))

    def _found(self, namespace: str, unread: list[str]) -> list[EntryFile]:
        try:
            return sorted(found_in(self._root, namespace, unread=unread), key=lambda each: each.place)
        except OSError as error:
            raise ArchiveError(f"cannot read archive {self._path}: {error.strerror}") from None

    async def read(self, place: EntryPath) -> Entry:
        try:
            with open_entry(self._root, place) as file:
                return decode_entry(file.read())
        except OSError as error:
            raise ArchiveError(f"cannot read {self._path}/{place}: {error.strerror}") from None

    async def close(self) -> None:
        os.close(self._root)
