"""One call in flight per key, shared by all concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from podlife.aio import spawn

# Timeout of callers that have a cached value to fall back on.
FALLBACK_SECONDS = 5.0

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """By key: concurrent callers share one call and its result or error.

    A call continues when its callers are cancelled: it is bounded by the client's deadline, and others may have
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
        # A finished call is not joined, even if its callback has not run yet.
        if task is None or task.done():
            # Every caller gets the error.
            task = self._calls[key] = spawn(call(), name=name, on_failure=lambda _: None)
            task.add_done_callback(lambda done: self._discard(key, done))
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)

    def forget(self, key: Hashable) -> None:
        """Later callers need a result newer than that of the call in flight."""
        self._calls.pop(key, None)

    def _discard(self, key: Hashable, task: asyncio.Task[T]) -> None:
        if self._calls.get(key) is task:
            del self._calls[key]
