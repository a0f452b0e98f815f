"""The event loop's time, made strictly increasing: no two readings are equal.

So even under virtual time, a reading before the end of a step is smaller than one after it.
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
