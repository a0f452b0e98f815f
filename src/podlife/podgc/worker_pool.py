"""The workers of a collector: so many calls at once, and none that is cut off in the middle when it stops.

It guarantees that a key is in one worker's hands at a time, that a worker which fails ends its owner, and that on
leaving the calls under way are finished, within a bound; what had not begun by then is not begun any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podlife.aio import cancel_and_wait, spawn
from podlife.workqueue import Queue, ShutDownError

__all__ = ["Crew"]

K = TypeVar("K", bound=Hashable)


class Crew(Generic[K]):
    """An async context manager. `work` is given a key and takes care of what can go wrong with it."""

    def __init__(
        self, queue: Queue[K], work: Callable[[K], Awaitable[None]], *, count: int, stop_seconds: float
    ) -> None:
        self._queue = queue
        self._work = work
        self._count = count
        self._stop_seconds = stop_seconds
        self._is_stopping = False
        self._workers: list[asyncio.Task[None]] = []
        self._failure: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Crew[K]:
        self._failure = asyncio.get_running_loop().create_future()
        self._workers = [
            spawn(self._labour(), name=f"{self._queue.name}-{number}", on_failure=self._fail)
            for number in range(self._count)
        ]
        return self

    async def watch(self) -> None:
        """Comes back never; raises what a worker failed of."""
        assert self._failure is not None
        await asyncio.shield(self._failure)

    async def __aexit__(self, *_: object) -> None:
        self._is_stopping = True
        await self._queue.shut_down()
        try:
            await asyncio.wait(self._workers, timeout=self._stop_seconds)
        finally:
            await cancel_and_wait(*self._workers)
            if self._failure is not None:
                self._failure.cancel()

    async def _labour(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDownError:
                return
            try:
                if not self._is_stopping:
                    await self._work(key)
            finally:
                self._queue.done(key)

    def _fail(self, failure: BaseException) -> None:
        if self._failure is not None and not self._failure.done():
            self._failure.set_exception(failure)
