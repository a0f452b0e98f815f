"""Reads a container's log file, once or as it grows.

Reads are bounded in size and run in a thread: a slow disk delays no other request. A followed log continues in the next
file after a rotation, and ends when its container has exited and everything was read; a reader slower than the rotation
misses only removed files. As upstream, reading starts with the newest file.
"""

from __future__ import annotations

import asyncio
import glob
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from podlife.aio import wait_until_set
from podlife.linux.inotify import WRITTEN, CloseWatch

from .cri_format import LogOptions, LogText

log = logging.getLogger(__name__)

T = TypeVar("T")

Write = Callable[[bytes], Awaitable[None]]

_CHUNK_BYTES = 128 * 1024
# The runtime reports when a container ends; polling covers missed events.
_RECHECK_SECONDS = 5.0
_POLL_SECONDS = 1.0
_TRIES = 10
# Suffixes of rotated files that are compressed or incomplete.
_NOT_TEXT = (".gz", ".tmp")


@dataclass(frozen=True, slots=True)
class Growth:
    """Whether a log may still grow. `changed` is set, here and by callers, when the file should be read again."""

    is_running: Callable[[], Awaitable[bool]]
    changed: asyncio.Event


class ContainerLogFile:
    """One open file of a log. A log without a file is empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._busy: asyncio.Future[Any] | None = None

    def open(self) -> bool:
        """Whether the file exists. Raises OSError if it exists but cannot be read."""
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        return True

    def open_next(self) -> bool:
        """Continue with the file that follows this one, which may have been rotated as well."""
        own = os.fstat(self._fd)
        self.close()
        for _ in range(_TRIES):
            # A file can be rotated and removed at any time.
            with suppress(FileNotFoundError):
                path = self._after(own)
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                if path == self._after(own):
                    return True
                # The name referred to another file by then.
            self.close()
        return self.open()

    def _after(self, own: os.stat_result) -> Path:
        """Rotated files are named by the time of their rotation."""
        newer: list[Path] = []
        for path in sorted(self._path.parent.glob(f"{glob.escape(self._path.name)}.*")):
            found = path.stat()
            if os.path.samestat(found, own):
                newer = []
            elif path.suffix not in _NOT_TEXT and found.st_mtime_ns >= own.st_mtime_ns:
                newer.append(path)
        return newer[0] if newer else self._path

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if self._busy is not None and not self._busy.done():
            # A thread is still reading: the descriptor must not be reused meanwhile.
            self._busy.add_done_callback(lambda read: _close_after(read, fd))
        else:
            os.close(fd)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    @property
    def is_rotated(self) -> bool:
        """Whether another file has taken its place; until then the writer may append to this one."""
        try:
            there = self._path.stat()
        except OSError:
            return False
        own = os.fstat(self._fd)
        return (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino)

    async def read(self, limit: int = _CHUNK_BYTES) -> bytes:
        return await self._in_thread(os.read, min(limit, _CHUNK_BYTES))

    async def seek_tail(self, lines: int) -> None:
        """Seek to the beginning of the last `lines` lines, including an unterminated one."""
        await self._in_thread(_seek_tail, lines)

    def remaining(self) -> int:
        return os.fstat(self._fd).st_size - os.lseek(self._fd, 0, os.SEEK_CUR)

    async def _in_thread(self, work: Callable[[int, int], T], number: int) -> T:
        busy = asyncio.get_running_loop().run_in_executor(None, work, self._fd, number)
        self._busy = busy
        return await asyncio.shield(busy)


async def read_log(path: Path, options: LogOptions, write: Write) -> None:
    """Write the log up to its current end."""
    file, text = ContainerLogFile(path), LogText(options)
    if not file.open():
        return
    try:
        if options.tail_lines is not None:
            await file.seek_tail(options.tail_lines)
        left = file.remaining()
        while left > 0 and not text.is_full and (data := await file.read(left)):
            left -= len(data)
            if shown := text.feed(data):
                await write(shown)
    finally:
        file.close()


async def follow_log(path: Path, options: LogOptions, write: Write, growth: Growth) -> None:
    """Write the log as it grows, until its container stops running."""
    file, text = ContainerLogFile(path), LogText(options)
    watch = CloseWatch(path.parent, lambda _: growth.changed.set(), kinds=WRITTEN)
    try:
        seconds = _start_watch(watch)
        if file.open() and options.tail_lines is not None:
            await file.seek_tail(options.tail_lines)
        while True:
            growth.changed.clear()
            # Checked before the final read, so that all output up to the exit is read.
            may_grow = await growth.is_running()
            await _read_through(file, text, write)
            if text.is_full or not may_grow:
                return
            await wait_until_set(growth.changed, seconds=seconds)
    finally:
        watch.close()
        file.close()


def _start_watch(watch: CloseWatch) -> float:
    """Start watching; returns the interval at which to poll anyway."""
    try:
        watch.open()
    except OSError as error:
        # The kernel limits inotify watches per user; polling every second is better than no log.
        log.warning("inotify unavailable, polling the log every second: %s", error)
        return _POLL_SECONDS
    return _RECHECK_SECONDS


async def _read_through(file: ContainerLogFile, text: LogText, write: Write) -> None:
    """Read to the end of this file, and of each file that replaced it."""
    if not (file.is_open or file.open()):
        return
    while True:
        # Checked before reading: after a rotation the file no longer grows.
        is_rotated = file.is_rotated
        while not text.is_full and (data := await file.read()):
            if shown := text.feed(data):
                await write(shown)
        if text.is_full or not is_rotated or not file.open_next():
            return


def _close_after(read: asyncio.Future[Any], fd: int) -> None:
    # Retrieve the exception, so that asyncio does not report it.
    if not read.cancelled():
        read.exception()
    os.close(fd)


def _seek_tail(fd: int, lines: int) -> None:
    os.lseek(fd, _tail_start(fd, lines), os.SEEK_SET)


def _tail_start(fd: int, lines: int) -> int:
    size = os.fstat(fd).st_size
    if lines <= 0:
        return size
    # The final line break terminates the last line.
    position, found = size - 1, 0
    while position > 0:
        begin = max(0, position - _CHUNK_BYTES)
        chunk = os.pread(fd, position - begin, begin)
        ends = chunk.count(b"\n")
        if found + ends >= lines:
            end = len(chunk)
            for _ in range(lines - found):
                end = chunk.rindex(b"\n", 0, end)
            return begin + end + 1
        found += ends
        position = begin
    return 0
