"""When a prober runs next: every period, and at once if a probe took longer than one.

Between two ticks there is one timer of the event loop, and no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Ticker:
    def __init__(self, period_seconds: float, tick: Callable[[], None]) -> None:
        self._period = period_seconds
        self._tick = tick
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def start(self, delay_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._next = loop.time() + delay_seconds
        self._wait(loop)

    def restart(self) -> None:
        """Tick now, and count periods from now."""
        self.start(0.0)

    def schedule_next(self) -> None:
        """Schedule the next tick."""
        self._wait(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop()
        self._timer = loop.call_at(max(self._next, loop.time()), self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        # Missed ticks are made up for by a single one.
        missed = max(0.0, loop.time() - self._next) // self._period
        self._next += (missed + 1) * self._period
        self._tick()
