"""Waits for a condition, each with a deadline: in the event loop's time, or in a test without a loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

_POLL_SECONDS = 0.02


async def until(holds: Callable[..., Any], what: str = "", *, seconds: float = 120.0) -> Any:
    """Wait until `holds`, which may be a coroutine function, returns a true value, and return that.

    It is called without arguments; in a loop its defaults hold the loop's variables."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        result = holds()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        assert loop.time() < deadline, what or f"not so within {seconds:g} s"
        await asyncio.sleep(_POLL_SECONDS)


def until_blocking(holds: Callable[..., Any], what: str = "", *, seconds: float = 180.0) -> None:
    """The same for a test without an event loop."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what or f"not so within {seconds:g} s"
        time.sleep(_POLL_SECONDS)
