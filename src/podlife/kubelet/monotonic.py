"""The event loop's time, moved on by the smallest step where it stands still: no two readings are equal.

Even under virtual time, what was read before a step ended differs from what was read after it.
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
