"""The archive in a folder for those who must not wait for a disk: its work is done by a few threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from podlife.clock import Clock
from podlife.podgc.archive.archive import ArchiveError
from podlife.podgc.archive.entry import DamagedError, Entry, decode_entry, encode_entry
from podlife.podgc.archive.folder import ArchiveFolder, Limits
from podlife.podgc.archive.places import place_of

__all__ = ["FolderArchive"]

T = TypeVar("T")

_THREADS = 4
# Longer than the lock is waited for: a disk that does not answer at all must not hold the collector for ever.
_MOST_SECONDS = 60.0


class FolderArchive:
    def __init__(self, path: Path, limits: Limits | None = None, *, clock: Clock) -> None:
        self.folder = ArchiveFolder(path, limits or Limits())
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="archive")

    def open(self) -> None:
        """Before the first entry; waits for the disk. Raises ArchiveError when the folder cannot be used."""
        self.folder.open(self._clock.now())

    async def check(self) -> None:
        now = self._clock.now()
        await self._in_thread(lambda: self.folder.check(now))

    async def get(self, namespace: str, name: str, uid: str) -> Entry | None:
        place = place_of(namespace, name, uid)
        return await self._in_thread(lambda: _decoded(self.folder.read(place)))

    async def put(self, entry: Entry) -> None:
        header = entry.header
        place = place_of(header.namespace, header.name, header.uid)
        await self._in_thread(lambda: self.folder.put(place, encode_entry(entry), header.archived_at))

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            raise ArchiveError(
                f"the archive {self.folder.path} cannot be used: its disk has not answered for {_MOST_SECONDS:g} s"
            ) from None


def _decoded(data: bytes | None) -> Entry | None:
    try:
        return None if data is None else decode_entry(data)
    except DamagedError:
        # It is replaced by one that is whole.
        return None
