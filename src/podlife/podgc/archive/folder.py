"""An archive in a folder: one file an entry, for its owner only. All of it waits for the disk: call it in a thread.

It guarantees that an entry is there whole or not at all, whenever the machine stops; that its bytes never exceed the
limit; that nothing is removed before its time, however full it is; and that nothing is touched that is not an entry.
Several processes may use one folder: see `ledger`. Entries are written aside first (`.partial`), so that the lock is
held only for as long as a name takes; a process that was killed leaves its part there, and the next one clears it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from podlife.podgc.archive.archive import ArchiveError
from podlife.podgc.archive.files import (
    Found,
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
from podlife.podgc.archive.places import Place
from podlife.podgc.archive.sizes import format_age, format_size

__all__ = ["ArchiveFolder", "Limits", "Pruned"]

# What is too old is looked for no more often than this, so that no entry costs a look at all others.
_MOST_PRUNE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    most_bytes: int = 1 << 30
    # Entries younger than this are never removed; 0 keeps all of them.
    most_age_seconds: float = 720 * 3600.0

    @property
    def prune_seconds(self) -> float:
        return min(_MOST_PRUNE_SECONDS, self.most_age_seconds / 10)

    def since(self, now: datetime) -> datetime | None:
        """What is from then or before it is too old; None where nothing is."""
        return now - timedelta(seconds=self.most_age_seconds) if self.most_age_seconds else None


@dataclass(frozen=True, slots=True)
class Pruned:
    removed: int
    removed_bytes: int
    entries: int
    bytes: int


class ArchiveFolder:
    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self._turn = threading.Lock()

    def open(self, now: datetime) -> None:
        """Make the folder if need be, clear what is left over or too old, and count. Raises ArchiveError."""
        with self._told():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._root() as root:
                clear_partial(root)
        self.prune(now)

    def check(self, now: datetime) -> None:
        """Remove what has become too old; raises ArchiveError when the folder is full, or cannot be used."""
        with self._told(), self._root() as root, self._changing(root) as ledger:
            if ledger.may_prune(self.limits, now):
                ledger.prune(self.limits.since(now), now)
            self._make_room(ledger, lambda: 1, now)

    def read(self, place: Place) -> bytes | None:
        """The entry there, None where there is none. Raises ArchiveError."""
        with self._told(), self._root() as root:
            try:
                with open_entry(root, place) as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def put(self, place: Place, data: bytes, now: datetime) -> None:
        """Keep the entry; when this comes back it stays, whatever happens. Raises ArchiveError."""
        with self._told(), self._root() as root, written_aside(root, data, now) as partial:
            with self._changing(root) as ledger:

                def added() -> int:
                    old = stat_of(root, place)
                    return len(data) - (old.st_size if old else 0)

                self._make_room(ledger, added, now)
                # Asked for again: making room may have removed the predecessor.
                is_new, growth = stat_of(root, place) is None, added()
                ledger.begin()
                make_namespace_folder(root, place.namespace)
                rename(root, partial, place)
                ledger.add(growth, is_new=is_new, moment=now.timestamp())
            # Not while others wait for the lock: only the pod whose entry it is must not go before.
            sync_namespace_folder(root, place.namespace)

    def prune(self, now: datetime, older_than: datetime | None = None) -> Pruned:
        """Remove what is older than that, or else what is too old, and count anew. Raises ArchiveError."""
        with self._told(), self._root() as root, self._changing(root) as ledger:
            return ledger.prune(older_than or self.limits.since(now), now)

    def count(self, since: datetime) -> tuple[int, int]:
        """How many entries are from then or before it, and their bytes. Changes nothing. Raises ArchiveError."""
        with self._told(), self._root() as root:
            old = [found.bytes for found in found_in(root) if found.moment <= since.timestamp()]
        return len(old), sum(old)

    def _make_room(self, ledger: _Change, added: Callable[[], int], now: datetime) -> None:
        """Raises ArchiveError when it is full."""
        if self._has_room(ledger, added()):
            return
        # Files that somebody has removed by hand are counted until somebody looks.
        if ledger.was_counted_before(now, _MOST_PRUNE_SECONDS):
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
        ledger = Ledger(root, turn=self._turn)
        with ledger.held() as known:
            change = _Change(root, ledger, known)
            try:
                yield change
            except ArchiveError:
                # A refusal of our own: nothing has happened that is not counted.
                change.end()
                raise
            # Not after any other failure: then it is counted anew by whoever comes next.
            change.end()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the disk refuses, as a line to act on."""
        try:
            yield
        except ArchiveError as error:
            if str(self.path) in str(error):
                raise
            raise ArchiveError(f"the archive {self.path} cannot be used: {error}") from None
        except OSError as error:
            raise ArchiveError(f"the archive {self.path} cannot be used: {_why(error)}") from None

    def _full(self) -> ArchiveError:
        size, age = format_size(self.limits.most_bytes), self.limits.most_age_seconds
        kept = f"nothing in it is older than {format_age(age)}" if age else "nothing in it is ever too old"
        return ArchiveError(
            f"the archive {self.path} is full ({size} may be in it, and {kept}): allow more with "
            "--archive-max-size, or make room with `podlife archive prune --older-than`"
        )


class _Change:
    """A change of the folder while its lock is held."""

    def __init__(self, root: int, ledger: Ledger, known: Holdings | None) -> None:
        self._root = root
        self._ledger = ledger
        self._is_news = known is None
        self.holdings = known or _count(root)

    def begin(self) -> None:
        """From now on, until the end, what is written of the folder may be wrong."""
        self._is_news = True
        self.holdings.is_changing = True
        self._ledger.write(self.holdings)

    def end(self) -> None:
        if self._is_news:
            self.holdings.is_changing = False
            self._ledger.write(self.holdings)

    def add(self, added: int, *, is_new: bool, moment: float) -> None:
        holdings = self.holdings
        holdings.bytes += added
        holdings.entries += is_new
        holdings.oldest = moment if holdings.oldest is None else min(moment, holdings.oldest)

    def may_prune(self, limits: Limits, now: datetime) -> bool:
        """Whether there is something too old, as far as is known, and it was not looked for just now."""
        oldest = self.holdings.oldest
        if not limits.most_age_seconds or oldest is None:
            return False
        is_old = oldest + limits.most_age_seconds <= now.timestamp()
        return is_old and self.was_counted_before(now, limits.prune_seconds)

    def was_counted_before(self, now: datetime, seconds: float) -> bool:
        """Whether the folder was last counted longer ago than that."""
        counted_at = self.holdings.counted_at
        return counted_at is None or abs(now.timestamp() - counted_at) >= seconds

    def prune(self, since: datetime | None, now: datetime) -> Pruned:
        self.begin()
        kept = Holdings(counted_at=now.timestamp(), is_changing=True)
        removed: list[Found] = []
        for found in found_in(self._root):
            if since is not None and found.moment <= since.timestamp():
                remove(self._root, found.place)
                removed.append(found)
            else:
                _add(kept, found)
        # Others that are empty may be somebody else's.
        remove_empty_folders(self._root, {found.place.namespace for found in removed})
        self.holdings = kept
        return Pruned(len(removed), sum(found.bytes for found in removed), kept.entries, kept.bytes)


def _count(root: int) -> Holdings:
    holdings = Holdings()
    for found in found_in(root):
        _add(holdings, found)
    return holdings


def _add(holdings: Holdings, found: Found) -> None:
    holdings.entries += 1
    holdings.bytes += found.bytes
    holdings.oldest = found.moment if holdings.oldest is None else min(found.moment, holdings.oldest)


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "no space is left on its disk; make room there, or name another with --archive"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "it, or something on the way to it, is a file and no folder; name another with --archive"
    return f"{error.strerror or error}; name another with --archive"
