"""An archive in a folder: one private file per entry. `ArchiveFolder` blocks on disk access; `FolderArchive` is the
`Archive` that calls it in threads.

Guarantees:
- An entry exists completely or not at all, even after a crash.
- The total size never exceeds the limit, and no entry is removed before it expires, however full the folder is.
- Only files of entries are touched.

Several processes may use one folder (see `ledger`). Entries are written to `.partial` first, so that the lock is held
only for a rename; what a killed process leaves there is removed by the next one.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from podlife.api.durations import format_one_unit
from podlife.clock import Clock
from podlife.podgc.archive.archive import ArchiveError, EntryPath, place_of
from podlife.podgc.archive.entry import DamagedError, Entry, decode_entry, encode_entry
from podlife.podgc.archive.files import (
    EntryFile,
    clear_partial,
    found_in,
    make_namespace_folder,
    open_entry,
    remove,
    remove_empty_folders,
    rename,
    stat_of,
    sync_namespace_folder,
    written_aside,
)
from podlife.podgc.archive.ledger import Holdings, Ledger

# Minimum time between two scans for expired entries.
_MAX_PRUNE_SECONDS = 60.0
_THREADS = 4
# Longer than the wait for the lock: a disk that does not answer must not block the collector forever.
_MAX_SECONDS = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    most_bytes: int = 1 << 30
    # Entries are removed only after this age; 0 keeps all of them.
    most_age_seconds: float = 720 * 3600.0

    @property
    def prune_seconds(self) -> float:
        return min(_MAX_PRUNE_SECONDS, self.most_age_seconds / 10)

    def since(self, now: datetime) -> datetime | None:
        """Entries of this time or older are expired; None if entries never expire."""
        return now - timedelta(seconds=self.most_age_seconds) if self.most_age_seconds else None


@dataclass(frozen=True, slots=True)
class Pruned:
    removed: int
    removed_bytes: int
    entries: int
    bytes: int


class ArchiveFolder:
    def __init__(self, path: Path, limits: ArchiveLimits) -> None:
        self.path = path
        self.limits = limits
        self._thread_lock = threading.Lock()

    def open(self, now: datetime) -> None:
        """Create the folder if necessary, remove leftovers and expired entries, and count. Raises ArchiveError."""
        with self._archive_errors():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._root() as root:
                clear_partial(root)
        self.prune(now)

    def check(self, now: datetime) -> None:
        """Remove expired entries. Raises ArchiveError if the folder is full or cannot be used."""
        with self._archive_errors(), self._root() as root, self._changing(root) as ledger:
            if ledger.may_prune(self.limits, now):
                ledger.prune(self.limits.since(now), now)
            self._make_room(ledger, lambda: 1, now)

    def read(self, place: EntryPath) -> bytes | None:
        """The entry, or None. Raises ArchiveError."""
        with self._archive_errors(), self._root() as root:
            try:
                with open_entry(root, place) as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def put(self, place: EntryPath, data: bytes, now: datetime) -> None:
        """Store the entry durably. Raises ArchiveError."""
        with self._archive_errors(), self._root() as root, written_aside(root, data, now) as partial:
            with self._changing(root) as ledger:

                def added() -> int:
                    old = stat_of(root, place)
                    return len(data) - (old.st_size if old else 0)

                self._make_room(ledger, added, now)
                # Read again: making room may have removed the predecessor.
                is_new, growth = stat_of(root, place) is None, added()
                ledger.begin()
                make_namespace_folder(root, place.namespace)
                rename(root, partial, place)
                ledger.add(growth, is_new=is_new, modified_at=now.timestamp())
            # After the lock is released: only the deletion of this pod has to wait for it.
            sync_namespace_folder(root, place.namespace)

    def prune(self, now: datetime, older_than: datetime | None = None) -> Pruned:
        """Remove entries older than that, or else expired ones, and count again. Raises ArchiveError."""
        with self._archive_errors(), self._root() as root, self._changing(root) as ledger:
            return ledger.prune(older_than or self.limits.since(now), now)

    def count(self, since: datetime) -> tuple[int, int]:
        """Number and bytes of the entries of that time or older. Read-only. Raises ArchiveError."""
        with self._archive_errors(), self._root() as root:
            old = [found.bytes for found in found_in(root) if found.modified_at <= since.timestamp()]
        return len(old), sum(old)

    def _make_room(self, ledger: _Change, added: Callable[[], int], now: datetime) -> None:
        """Raises ArchiveError if the folder is full."""
        if self._has_room(ledger, added()):
            return
        # Files that were removed by hand are counted until the next scan.
        if ledger.was_counted_before(now, _MAX_PRUNE_SECONDS):
            ledger.prune(self.limits.since(now), now)
        if not self._has_room(ledger, added()):
            raise self._full()

    def _has_room(self, ledger: _Change, added: int) -> bool:
        return added <= 0 or ledger.holdings.bytes + added <= self.limits.most_bytes

    @contextmanager
    def _root(self) -> Iterator[int]:
        root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield root
        finally:
            os.close(root)

    @contextmanager
    def _changing(self, root: int) -> Iterator[_Change]:
        ledger = Ledger(root, thread_lock=self._thread_lock)
        with ledger.held() as known:
            change = _Change(root, ledger, known)
            try:
                yield change
            except ArchiveError:
                # A refusal: nothing was changed, the numbers are right.
                change.end()
                raise
            # After any other failure the next process counts again.
            change.end()

    @contextmanager
    def _archive_errors(self) -> Iterator[None]:
        """Turns OSError into ArchiveError with advice."""
        try:
            yield
        except ArchiveError as error:
            if str(self.path) in str(error):
                raise
            raise ArchiveError(f"cannot use archive {self.path}: {error}") from None
        except OSError as error:
            raise ArchiveError(f"cannot use archive {self.path}: {_why(error)}") from None

    def _full(self) -> ArchiveError:
        size, age = format_size(self.limits.most_bytes), self.limits.most_age_seconds
        kept = f"no entry is older than {format_one_unit(age)}" if age else "entries never expire"
        return ArchiveError(
            f"archive {self.path} is full (limit {size}, {kept}): raise --archive-max-size, or run "
            "`podlife archive prune --older-than`"
        )


class _Change:
    """A change of the folder, while its lock is held."""

    def __init__(self, root: int, ledger: Ledger, known: Holdings | None) -> None:
        self._root = root
        self._ledger = ledger
        self._is_dirty = known is None
        self.holdings = known or _count(root)

    def begin(self) -> None:
        """Mark the numbers as unreliable until `end`."""
        self._is_dirty = True
        self.holdings.is_changing = True
        self._ledger.write(self.holdings)

    def end(self) -> None:
        if self._is_dirty:
            self.holdings.is_changing = False
            self._ledger.write(self.holdings)

    def add(self, added: int, *, is_new: bool, modified_at: float) -> None:
        holdings = self.holdings
        holdings.bytes += added
        holdings.entries += is_new
        holdings.oldest = modified_at if holdings.oldest is None else min(modified_at, holdings.oldest)

    def may_prune(self, limits: ArchiveLimits, now: datetime) -> bool:
        """Whether an entry has expired, as far as is known, and the last scan was not just now."""
        oldest = self.holdings.oldest
        if not limits.most_age_seconds or oldest is None:
            return False
        is_old = oldest + limits.most_age_seconds <= now.timestamp()
        return is_old and self.was_counted_before(now, limits.prune_seconds)

    def was_counted_before(self, now: datetime, seconds: float) -> bool:
        """Whether the last count is older than that."""
        counted_at = self.holdings.counted_at
        return counted_at is None or abs(now.timestamp() - counted_at) >= seconds

    def prune(self, since: datetime | None, now: datetime) -> Pruned:
        self.begin()
        kept = Holdings(counted_at=now.timestamp(), is_changing=True)
        removed: list[EntryFile] = []
        for found in found_in(self._root):
            if since is not None and found.modified_at <= since.timestamp():
                remove(self._root, found.place)
                removed.append(found)
            else:
                _add(kept, found)
        # Other empty directories may not be ours.
        remove_empty_folders(self._root, {found.place.namespace for found in removed})
        self.holdings = kept
        return Pruned(len(removed), sum(found.bytes for found in removed), kept.entries, kept.bytes)


def _count(root: int) -> Holdings:
    holdings = Holdings()
    for found in found_in(root):
        _add(holdings, found)
    return holdings


def _add(holdings: Holdings, found: EntryFile) -> None:
    holdings.entries += 1
    holdings.bytes += found.bytes
    holdings.oldest = (
        found.modified_at if holdings.oldest is None else min(found.modified_at, holdings.oldest)
    )


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "no space left on device; free some, or set another directory with --archive"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "not a directory; set another one with --archive"
    return f"{error.strerror or error}; set another directory with --archive"


def format_size(number: int) -> str:
    """As Kubernetes writes sizes: 1Gi, 1.5Mi, 700."""
    size, units = float(number), ["", "Ki", "Mi", "Gi", "Ti"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.1f}".removesuffix(".0") + units[0]


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
            async with asyncio.timeout(_MAX_SECONDS):
                return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            raise ArchiveError(
                f"cannot use archive {self.folder.path}: the disk has not answered for {_MAX_SECONDS:g} s"
            ) from None


def _decoded(data: bytes | None) -> Entry | None:
    try:
        return None if data is None else decode_entry(data)
    except DamagedError:
        # The new entry replaces it.
        return None
