"""Slow start: batches that begin with one call and double, as upstream's slowStartBatch.

If every call fails for the same reason (quota exceeded, invalid template), the server sees a few failures instead of
thousands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

INITIAL_BATCH = 1
# Concurrency within a batch: more requests would only queue at the limiter.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class SlowStart:
    """What came of it: `skipped` were not tried, since one before them failed."""

    succeeded: int
    skipped: int
    errors: tuple[Exception, ...] = ()

    def raise_error(self) -> None:
        """Raises the first error, if there was one."""
        if self.errors:
            raise self.errors[0]


async def slow_start(
    count: int, act: Callable[[], Awaitable[object]], *, initial_batch: int = INITIAL_BATCH
) -> SlowStart:
    """Act so many times: the batch that has a failure is the last one, and nothing more of it is begun. Raises nothing
    that `act` does; who expects all of them has to expect `count - succeeded` less."""
    succeeded, remaining = 0, count
    batch = min(remaining, initial_batch)
    while batch > 0:
        tried, errors = await _act(batch, act)
        succeeded += tried - len(errors)
        remaining -= tried
        if errors:
            return SlowStart(succeeded, remaining, errors)
        batch = min(2 * batch, remaining)
    return SlowStart(succeeded, 0)


async def _act(count: int, act: Callable[[], Awaitable[object]]) -> tuple[int, tuple[Exception, ...]]:
    """How many were tried, and what went wrong, in the order in which it did."""
    # So many begin at the same time, whatever becomes of them; the others wait until one of those is through.
    tried = width = min(count, _AT_ONCE)
    errors: list[Exception] = []

    async def take_turns() -> None:
        nonlocal tried
        while True:
            try:
                await act()
            except Exception as error:  # noqa: BLE001 - whatever it was, the caller has to know how many succeeded
                errors.append(error)
            if errors or tried == count:
                return
            tried += 1

    await asyncio.gather(*(take_turns() for _ in range(width)))
    return tried, tuple(errors)
