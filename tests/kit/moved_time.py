"""Deadlines over real sockets and processes, met when a test says so.

A short deadline of a real loop is met too early on a machine that is busy, and a long one nobody wants to wait for. So
tests give long ones, see that everything has come as far as is meant, and let the time pass.
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
    """The running loop's time goes on by so much at once. Not uvloop's, which keeps its own."""
    loop = asyncio.get_running_loop()
    if loop not in _passed:
        own = loop.time
        loop.time = lambda: own() + _passed[loop]  # type: ignore[method-assign]
    _passed[loop] = _passed.get(loop, 0.0) + seconds


async def use_up(seconds: float, task: asyncio.Task[Any]) -> None:
    """Until a task has ended that has so much time, also where that begins only after what the test could see."""
    # Mostly it has begun by now; where it has not, the time passes for nobody, and once more.
    await asyncio.wait((task,), timeout=0.1)
    while not task.done():
        pass_time(seconds)
        await asyncio.wait((task,), timeout=10)


async def heard(writer: asyncio.StreamWriter) -> None:
    """Until what was written has arrived, and whoever reads it in this loop has had time to."""
    link = writer.get_extra_info("socket").fileno()
    async with asyncio.timeout(60):
        while struct.unpack("i", fcntl.ioctl(link, termios.TIOCOUTQ, bytes(4))) != (0,):
            await asyncio.sleep(0.001)
    for _ in range(20):
        await asyncio.sleep(0)
