"""The number and size of the entries in an archive folder, in a small file that is also its lock.

Adding an entry therefore needs no scan. Changes hold the lock, which the operating system releases with its process.
During a change the file says so; a process that finds it in this state, or unreadable, counts the entries again, so a
killed process leaves no wrong numbers behind.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from podlife.podgc.archive.archive import ArchiveError

FILE = ".lock"
# Longer than counting a million entries takes.
LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.01
# Overwritten in place with a fixed length, so that it needs no space on a full disk.
_LENGTH = 256


class Holdings(msgspec.Struct, rename="camel"):
    """Number and bytes of the entries, and the time of the oldest, in seconds since 1970."""

    entries: int = 0
    bytes: int = 0
    oldest: float | None = None
    # When the entries were last counted and pruned.
    counted_at: float | None = None
    is_changing: bool = False


class Ledger:
    """`folder` is an open descriptor, which the caller closes."""

    def __init__(self, folder: int, *, thread_lock: threading.Lock, seconds: float = LOCK_SECONDS) -> None:
        self._folder = folder
        # The operating system lock does not separate threads; this one does.
        self._thread_lock = thread_lock
        self._seconds = seconds
        self._file = -1

    @contextmanager
    def held(self) -> Iterator[Holdings | None]:
        """Lock the folder and yield the holdings; None if they are unknown. Raises ArchiveError if the lock cannot be
        acquired."""
        deadline = time.monotonic() + self._seconds
        if not self._thread_lock.acquire(timeout=self._seconds):
            raise self._busy()
        try:
            self._file = self._locked(deadline)
            try:
                yield self._read()
            finally:
                os.close(self._file)
        finally:
            self._thread_lock.release()

    def write(self, holdings: Holdings) -> None:
        """Only while the lock is held."""
        os.pwrite(self._file, msgspec.json.encode(holdings).ljust(_LENGTH - 1) + b"\n", 0)

    def _read(self) -> Holdings | None:
        try:
            holdings = msgspec.json.decode(os.pread(self._file, _LENGTH, 0), type=Holdings)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return None if holdings.is_changing else holdings

    def _locked(self, deadline: float) -> int:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(FILE, flags, 0o600, dir_fd=self._folder)
            try:
                self._wait_for(file, deadline)
                if os.fstat(file).st_nlink:
                    return file
            except BaseException:
                os.close(file)
                raise
            # The folder was emptied meanwhile: other processes lock a new file.
            os.close(file)

    def _wait_for(self, file: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy() from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _busy(self) -> ArchiveError:
        return ArchiveError(f"another process has held its lock for {self._seconds:g} s")
