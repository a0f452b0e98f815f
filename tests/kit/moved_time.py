"""Lets the time of a real event loop pass, for deadlines over real sockets and processes.

A short deadline expires too early on a busy machine, and a long one makes tests slow. So tests set long deadlines, wait
until everything is in the expected state, and then advance the loop's time.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from typing import Any
from weakref import WeakKeyDictionary

_passed: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


def pass_time(seconds: float) -> None:
    """Advance the running loop's time. Does not work with uvloop, which keeps its own."""
    loop = asyncio.get_running_loop()
    if loop not in _passed:
        own = loop.time
        loop.time = lambda: own() + _passed[loop]  # type: ignore[method-assign]
    _passed[loop] = _passed.get(loop, 0.0) + seconds


async def use_up(seconds: float, task: asyncio.Task[Any]) -> None:
    """Wait until a task with this deadline has ended, even if its deadline starts later than the test can observe."""
    # Usually the deadline has started by now; otherwise time passes once more.
    await asyncio.wait((task,), timeout=0.1)
    while not task.done():
        pass_time(seconds)
        await asyncio.wait((task,), timeout=10)


async def heard(writer: asyncio.StreamWriter) -> None:
    """Wait until the written data has arrived and readers in this loop have had time to process it."""
    link = writer.get_extra_info("socket").fileno()
    async with asyncio.timeout(60):
        while struct.unpack("i", fcntl.ioctl(link, termios.TIOCOUTQ, bytes(4))) != (0,):
            await asyncio.sleep(0.001)
    for _ in range(20):
        await asyncio.sleep(0)
