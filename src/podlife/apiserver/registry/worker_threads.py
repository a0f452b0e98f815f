"""Work that grows with its input, beside the event loop.

Reading, defaulting, validating and showing an object costs in proportion to its size: microseconds for a pod, seconds
for three megabytes of one. What is small is done at once. What is large is done by a few threads, so that nobody else
waits for it: while they work, the interpreter gives the event loop its turn every few milliseconds.

The threads are few, because each of them makes the event loop wait longer for its turn, and the line before them is
short, because every request in it keeps its body: when it is full, further requests get 429.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from podlife.errors import TooManyRequestsError
from podlife.memory import give_back_soon

__all__ = ["aside", "in_thread", "is_large"]

T = TypeVar("T")

_LARGE_BYTES = 64 * 1024
# A few bytes can be a whole element to default and to validate: `{},` is.
_LARGE_COMMAS = 1_000
_THREADS = 2
_MOST_UNDER_WAY = 64
_RETRY_SECONDS = 1

_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="large work")
_under_way: set[object] = set()


def is_large(*inputs: bytes) -> bool:
    """Whether work on these is too much for the event loop."""
    return sum(map(len, inputs)) > _LARGE_BYTES or sum(data.count(b",") for data in inputs) > _LARGE_COMMAS


async def aside(work: Callable[[], T], *inputs: bytes) -> T:
    """What the work gives, done at once if its inputs are small and else in a thread.

    It may only touch what belongs to this request, and read the store. Raises TooManyRequestsError."""
    return await in_thread(work) if is_large(*inputs) else work()


async def in_thread(work: Callable[[], T]) -> T:
    """As `aside`, where it is known that the work is much."""
    if len(_under_way) >= _MOST_UNDER_WAY:
        raise TooManyRequestsError(
            "Too many requests, please try again later.", details={"retryAfterSeconds": _RETRY_SECONDS}
        )
    mark = object()
    _under_way.add(mark)
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, work)
    finally:
        _under_way.discard(mark)
        give_back_soon()
