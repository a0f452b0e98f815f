"""When a prober runs next: every period, and at once after a probe that took longer than one.

Between two probes there is one timer of the event loop, and no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Ticker:
    def __init__(self, period_seconds: float, look: Callable[[], None]) -> None:
        self._period = period_seconds
        self._look = look
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def start(self, delay_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._next = loop.time() + delay_seconds
        self._wait(loop)

    def restart(self) -> None:
        """Look now, and count the periods from now."""
        self.start(0.0)

    def go_on(self) -> None:
        """A look is over."""
        self._wait(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop()
        self._timer = loop.call_at(max(self._next, loop.time()), self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        # The next beat that is still to come; of those that were missed one is made up for.
        missed = max(0.0, loop.time() - self._next) // self._period
        self._next += (missed + 1) * self._period
        self._look()
