"""`Archive` in a folder, with its blocking work done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from podlife.clock import Clock
from podlife.podgc.archive.archive import ArchiveError
from podlife.podgc.archive.entry import DamagedError, Entry, decode_entry, encode_entry
from podlife.podgc.archive.folder import ArchiveFolder, ArchiveLimits
from podlife.podgc.archive.places import place_of

T = TypeVar("T")

_THREADS = 4
# Longer than the wait for the lock: a disk that does not answer must not block the collector forever.
_MOST_SECONDS = 60.0


class FolderArchive:
    def __init__(self, path: Path, limits: ArchiveLimits | None = None, *, clock: Clock) -> None:
        self.folder = ArchiveFolder(path, limits or ArchiveLimits())
        self._clock = clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="archive")

    def open(self) -> None:
        """Call before the first entry; blocks on disk access. Raises ArchiveError if the folder cannot be used."""
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
                f"cannot use archive {self.folder.path}: the disk has not answered for {_MOST_SECONDS:g} s"
            ) from None


def _decoded(data: bytes | None) -> Entry | None:
    try:
        return None if data is None else decode_entry(data)
    except DamagedError:
        # The new entry replaces it.
        return None
