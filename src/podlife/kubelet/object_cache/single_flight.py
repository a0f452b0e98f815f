"""One call in flight per key, shared by all concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from podlife.aio import spawn

# How long a caller waits that has a cached value to fall back on.
PATIENCE_SECONDS = 5.0

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """By key: callers that ask while a call is in flight get its answer, or its failure.

    A call continues when its callers are cancelled: it is bounded by the client's own deadline, and others may have
    joined."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, asyncio.Task[T]] = {}

    async def join(
        self,
        key: Hashable,
        name: str,
        call: Callable[[], Coroutine[Any, Any, T]],
        *,
        seconds: float | None = None,
    ) -> T:
        """Raises TimeoutError after `seconds`; the call continues."""
        task = self._calls.get(key)
        # One that has ended is not under way, though its end may not have been taken note of yet.
        if task is None or task.done():
            # The failure is raised in every caller.
            task = self._calls[key] = spawn(call(), name=name, on_failure=lambda _: None)
            task.add_done_callback(lambda done: self._ended(key, done))
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)

    def forget(self, key: Hashable) -> None:
        """Who asks from now on wants an answer newer than the one that is on its way."""
        self._calls.pop(key, None)

    def _ended(self, key: Hashable, task: asyncio.Task[T]) -> None:
        if self._calls.get(key) is task:
            del self._calls[key]
