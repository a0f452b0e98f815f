"""Tells that something changed in a folder: written, created, renamed. The kernel says so; nothing is polled."""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["FolderWatch"]

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_MASK = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_READ_BYTES = 64 * 1024


class FolderWatch:
    """Sets `changed` at every change; whoever waits clears it before the next look. Raises OSError where it cannot."""

    def __init__(self, folder: Path, changed: asyncio.Event) -> None:
        self._folder = folder
        self._changed = changed
        self._fd = -1

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(self._folder), _MASK) < 0:
            code = ctypes.get_errno()
            self._close()
            raise OSError(code, f"cannot watch {self._folder}: {os.strerror(code)}")
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        try:
            os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        self._changed.set()
