"""Reading an archive: what is in it, and one entry of it. Nothing is changed, and no lock is needed.

`Shelf` is the seam between a folder and a bucket. An entry that cannot be read is told with its place and its reason,
beside the others.
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

from podlife.podgc.archive.archive import ArchiveError
from podlife.podgc.archive.entry import DamagedError, Entry, Header, decode_entry, read_header
from podlife.podgc.archive.files import Found, found_in, open_entry
from podlife.podgc.archive.places import Place, stem_of

__all__ = ["Damaged", "FolderShelf", "Item", "Shelf", "find"]


@dataclass(frozen=True, slots=True)
class Item:
    place: Place
    bytes: int
    moment: datetime
    header: Header


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that cannot be read; with no name of a file, a namespace of which nothing can."""

    place: Place
    why: str


class Shelf(Protocol):
    def items(
        self, namespace: str = "", *, since: datetime | None = None, stem: str = "", uid: str = ""
    ) -> AsyncGenerator[Item | Damaged, None]:
        """What there is, in the order of its places: of a namespace, from a time on, of files whose name begins so,
        of one UID. Of nothing else the header is read. Raises ArchiveError."""

    async def read(self, place: Place) -> Entry:
        """Raises DamagedError, or ArchiveError when it cannot be had."""

    async def close(self) -> None: ...


async def find(shelf: Shelf, wanted: str, namespace: str = "") -> Sequence[Item | Damaged]:
    """Entries of the pod with this name or this UID, the newest first; those that may be meant and cannot be read come
    last."""
    for stem, uid in ((f"{stem_of(wanted)}_", ""), ("", wanted)):
        async with aclosing(shelf.items(namespace, stem=stem, uid=uid)) as items:
            found = [each async for each in items if _is_meant(each, wanted)]
        if found:
            return sorted(found, key=_age_order, reverse=True)
    return []


def _age_order(each: Item | Damaged) -> float:
    return each.moment.timestamp() if isinstance(each, Item) else 0.0


def _is_meant(each: Item | Damaged, wanted: str) -> bool:
    if each.place.uid == wanted or not each.place.file:
        return True
    return each.header.name == wanted if isinstance(each, Item) else each.place.name == stem_of(wanted)


class FolderShelf:
    """Waits for the disk, which keeps nobody: it is for a command that does nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ArchiveError(
                f"there is no archive in {path}: name its folder with --archive or PODLIFE_ARCHIVE"
            ) from None
        except OSError as error:
            raise ArchiveError(f"the archive {path} cannot be read: {error.strerror}") from None

    async def items(
        self, namespace: str = "", *, since: datetime | None = None, stem: str = "", uid: str = ""
    ) -> AsyncGenerator[Item | Damaged, None]:
        unread: list[str] = []
        for found in self._found(namespace, unread):
            moment = datetime.fromtimestamp(found.moment, UTC)
            if not found.place.is_of(stem, uid) or (since is not None and moment < since):
                continue
            try:
                with open_entry(self._root, found.place) as file:
                    header = read_header(file)
            except FileNotFoundError:
                # It has become too old while we looked.
                continue
            except (DamagedError, OSError) as error:
                yield Damaged(found.place, _why(error))
            else:
                yield Item(found.place, found.bytes, moment, header)
        for name in unread:
            yield Damaged(Place(name, ""), os.strerror(errno.EACCES))

    def _found(self, namespace: str, unread: list[str]) -> list[Found]:
        try:
            return sorted(found_in(self._root, namespace, unread=unread), key=lambda each: each.place)
        except OSError as error:
            raise ArchiveError(f"the archive {self._path} cannot be read: {error.strerror}") from None

    async def read(self, place: Place) -> Entry:
        try:
            with open_entry(self._root, place) as file:
                return decode_entry(file.read())
        except OSError as error:
            raise ArchiveError(f"{self._path}/{place} cannot be read: {error.strerror}") from None

    async def close(self) -> None:
        os.close(self._root)


def _why(error: DamagedError | OSError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
