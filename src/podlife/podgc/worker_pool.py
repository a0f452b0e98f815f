"""Bounded concurrency: the worker pool of a collector, with a graceful stop, and `for_each` for a list of items.

A key is handled by one worker at a time. A failing worker ends the owner of the pool. On exit, work in progress
finishes within a bound, and nothing new is started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Generic, TypeVar

from podlife.aio import cancel_and_wait, spawn
from podlife.workqueue import Queue, ShutDownError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


async def for_each(
    items: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    at_once: int,
    stopping: asyncio.Event | None = None,
) -> int:
    """Handle the items in order; returns how many were not started because of the event."""
    waiting = deque(items)

    async def worker() -> None:
        while waiting and not (stopping is not None and stopping.is_set()):
            await work(waiting.popleft())

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(waiting), at_once)):
            group.create_task(worker())
    return len(waiting)


class WorkerPool(Generic[K]):
    """An async context manager. `work` handles one key, including its errors."""

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

    async def __aenter__(self) -> WorkerPool[K]:
        self._failure = asyncio.get_running_loop().create_future()
        self._workers = [
            spawn(self._run_worker(), name=f"{self._queue.name}-{number}", on_failure=self._fail)
            for number in range(self._count)
        ]
        return self

    async def watch(self) -> None:
        """Never returns; raises the error that ended a worker."""
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

    async def _run_worker(self) -> None:
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
