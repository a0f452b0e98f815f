"""Notifies about files of one directory (inotify): that one was closed after writing, which is how a supervisor's end
is seen; with `CHANGED`, that files may have been added or removed; with `WRITTEN`, that contents may have changed.

Nothing polls, and one descriptor serves all containers.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path

CLOSED = 0x8
# Moved, deleted, or the directory itself removed.
CHANGED = CLOSED | 0x40 | 0x80 | 0x200 | 0x400 | 0x800
# Every write, and every new file.
WRITTEN = CHANGED | 0x2 | 0x100
_IN_Q_OVERFLOW = 0x4000
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_HEADER = struct.Struct("iIII")


class CloseWatch:
    """Calls `closed` with each name, or with None if names were lost and all files must be examined."""

    def __init__(self, folder: Path, closed: Callable[[str | None], None], *, kinds: int = CLOSED) -> None:
        self._folder = folder
        self._closed = closed
        self._kinds = kinds
        self._fd = -1

    def open(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(self._folder), self._kinds) < 0:
            code = ctypes.get_errno()
            self.close()
            raise OSError(code, f"cannot watch {self._folder}: {os.strerror(code)}")
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 64 * 1024)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            _, mask, _, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = data[offset : offset + length].rstrip(b"\0")
            offset += length
            self._closed(None if mask & _IN_Q_OVERFLOW else os.fsdecode(name))
