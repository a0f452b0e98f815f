"""Calls in flight to the daemon. A caller may stop waiting; the call continues, and its effect is observed.

Calls within one sandbox can be awaited: nothing may be created or started in a sandbox after it was stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from podlife.aio import cancel_and_wait, spawn

log = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSE_SECONDS = 2.0


class PendingCalls:
    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], str] = {}

    async def give(self, order: Coroutine[Any, Any, T], name: str, *, within: str = "") -> T:
        """Answer what comes of it. `within` is the sandbox, or the container, that has to wait for it."""
        task = spawn(
            order, name=f"containerd order: {name}", on_failure=lambda error: log.debug("%s: %s", name, error)
        )
        self._tasks[task] = within
        task.add_done_callback(self._tasks.pop)
        return await asyncio.shield(task)

    async def wait_for(self, *within: str) -> None:
        """Until nothing is on its way there; every order has a deadline of its own."""
        while waiting := [task for task, where in self._tasks.items() if where in within]:
            await asyncio.wait(waiting)

    async def close(self) -> None:
        """Give what is on its way a little time, then no more."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        await cancel_and_wait(*self._tasks)
