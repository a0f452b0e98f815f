"""What an archive folder holds, in one small file that is also its lock: so no entry costs a look at the others.

Whoever changes the folder holds the lock: a lock of the operating system, which ends with its process. While a change
is under way the file says so; whoever finds it so, or finds nothing that can be read, counts the folder anew, and so a
process that was killed leaves no wrong number behind.
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

__all__ = ["LOCK_SECONDS", "Holdings", "Ledger"]

FILE = ".lock"
# Longer than it takes to count a folder of a million entries.
LOCK_SECONDS = 30.0
_POLL_SECONDS = 0.01
# Written over itself, always the same length: it takes no room on a disk that has become full.
_LENGTH = 256


class Holdings(msgspec.Struct, rename="camel"):
    """Numbers and bytes of the entries, and the moment of the oldest, in seconds since 1970."""

    entries: int = 0
    bytes: int = 0
    oldest: float | None = None
    # When the folder was last counted, and cleared of what was too old.
    counted_at: float | None = None
    is_changing: bool = False


class Ledger:
    """`folder` is an open descriptor, which stays its owner's."""

    def __init__(self, folder: int, *, turn: threading.Lock, seconds: float = LOCK_SECONDS) -> None:
        self._folder = folder
        # A lock of the operating system is one of the file, not of the thread: within the process it is this one.
        self._turn = turn
        self._seconds = seconds
        self._file = -1

    @contextmanager
    def held(self) -> Iterator[Holdings | None]:
        """What the folder holds, for as long as nobody else may change it; None where that is not known. Raises
        ArchiveError when it is not to be had."""
        deadline = time.monotonic() + self._seconds
        if not self._turn.acquire(timeout=self._seconds):
            raise self._busy()
        try:
            self._file = self._locked(deadline)
            try:
                yield self._read()
            finally:
                os.close(self._file)
        finally:
            self._turn.release()

    def write(self, holdings: Holdings) -> None:
        """While it is held."""
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
            # Somebody has emptied the folder meanwhile: the lock of all others is on another file by now.
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
