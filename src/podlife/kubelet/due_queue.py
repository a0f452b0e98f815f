"""When pods are to be looked at again, and waiting for it: at most once a second, not at all while nothing is due."""

from __future__ import annotations

import asyncio
import math

from podlife.aio import wait_until_set
from podlife.kubelet.constants import SYNC_TICK_SECONDS
from podlife.kubelet.podworkers import RetryQueue

__all__ = ["DueQueue"]

# Nothing is due for longer than that without somebody having put it here.
_LONGEST_WAIT_SECONDS = 3600.0


class DueQueue(RetryQueue):
    def __init__(self) -> None:
        super().__init__()
        self._waits_for = math.inf
        self._is_earlier = asyncio.Event()

    def put(self, uid: str, at: float) -> None:
        super().put(uid, at)
        if at < self._waits_for:
            self._waits_for = at
            self._is_earlier.set()

    async def wait(self) -> list[str]:
        """Wait until some are due; answers those."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(SYNC_TICK_SECONDS)
        while not (due := self.take_due(loop.time())):
            self._is_earlier.clear()
            self._waits_for = self.next_at
            seconds = min(self._waits_for - loop.time(), _LONGEST_WAIT_SECONDS)
            await wait_until_set(self._is_earlier, seconds=max(seconds, 0.0))
            if not self._is_earlier.is_set():
                # What lies before now is due, what lies at this very moment is not yet.
                await asyncio.sleep(0.001)
        return due
