"""Moments of which no two are the same: the event loop's time, moved on by the least there is where that stands still.

What was read before a step ended and what was read after it are told apart by them, also under virtual time.
"""

from __future__ import annotations

import asyncio
import math


class MonotonicSeconds:
    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self) -> float:
        now = asyncio.get_running_loop().time()
        self._last = now if now > self._last else math.nextafter(self._last, math.inf)
        return self._last
