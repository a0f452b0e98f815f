"""Waits for tests: until no task can run, until nothing changes, until a condition holds.

Each wait has a limit in the event loop's time and reports what was going on if it expires.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from podlife.testing.request_log import RequestLog
from podlife.testing.virtual_loop import VirtualTimeLoop

# How long nothing has to happen until a cluster is at rest, and how long that is waited for.
QUIET_SECONDS = 5.0
PATIENCE_SECONDS = 600.0
# Poll interval of conditions, and how much of the recent activity is reported.
_LOOK_SECONDS = 0.1
_TOLD = 10


class NotSettledError(AssertionError):
    """A wait expired; the message has the recent activity."""


async def let_happen() -> None:
    """Everything that can happen before time passes; in real time, one round."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


async def wait_for_rest(audit: RequestLog, *, quiet_seconds: float, within: float) -> None:
    """Until nothing has changed for a while. Raises NotSettledError."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (left := max(began, audit.changed_at) + quiet_seconds - loop.time()) > 0:
        if loop.time() - began > within:
            last = "\n".join(str(each) for each in list(audit)[-_TOLD:])
            raise NotSettledError(
                f"after {within:g} s there is still no rest; the last changes were:\n{last}"
            )
        await asyncio.sleep(left)
        await let_happen()


async def wait_until(holds: Callable[[], Any], *, within: float, what: str) -> float:
    """Until it holds; how long that took. Raises NotSettledError."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        await let_happen()
        answer = holds()
        if await answer if inspect.isawaitable(answer) else answer:
            return loop.time() - began
        if loop.time() - began >= within:
            what = what or getattr(holds, "__name__", "the condition")
            raise NotSettledError(f"{what}: not so after {within:g} s")
        await asyncio.sleep(_LOOK_SECONDS)
