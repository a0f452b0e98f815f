"""One operation at a time per pod, even if a caller stops waiting for work that cannot be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class PodLock:
    def __init__(self, *, in_threads: bool) -> None:
        self._in_threads = in_threads
        self.work: asyncio.Future[object] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run blocking work. If the caller is cancelled, the work continues and the lock is held until it ends."""
        if not self._in_threads:
            return work()
        future = asyncio.get_running_loop().run_in_executor(None, work)
        self.work = future  # type: ignore[assignment]  # only its state is used
        return await asyncio.shield(future)


class PodLocks:
    def __init__(self, *, in_threads: bool) -> None:
        self._in_threads = in_threads
        self._busy: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def take(self, key: str) -> AsyncIterator[PodLock]:
        while (busy := self._busy.get(key)) is not None:
            await asyncio.wait([busy])
        own = self._busy[key] = asyncio.get_running_loop().create_future()
        lock = PodLock(in_threads=self._in_threads)

        def ended(work: asyncio.Future[object] | None) -> None:
            del self._busy[key]
            own.set_result(None)
            if work is not None and not work.cancelled():
                # The caller was cancelled: drop the error.
                work.exception()

        try:
            yield lock
        finally:
            if lock.work is not None and not lock.work.done():
                lock.work.add_done_callback(ended)
            else:
                ended(None)
