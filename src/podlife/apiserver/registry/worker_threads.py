"""Worker threads for requests whose cost grows with their input.

Decoding, defaulting, validating and encoding an object takes time in proportion to its size: microseconds for a pod,
seconds for three megabytes. Small inputs are processed at once on the event loop. Large ones are processed by a few
threads, so that other requests do not wait: the interpreter switches to the event loop every few milliseconds.

The threads are few, because each delays the event loop, and their queue is short, because
every queued request keeps its body: when it is full, further requests get 429.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from podlife.errors import TooManyRequestsError
from podlife.memory import give_back_soon

T = TypeVar("T")

_LARGE_BYTES = 64 * 1024
# A few bytes can be a whole element to default and to validate, such as `{},`.
_LARGE_COMMAS = 1_000
_THREADS = 2
_MOST_UNDER_WAY = 64
_RETRY_SECONDS = 1

_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="large work")
_under_way: set[object] = set()


def is_large(*inputs: bytes) -> bool:
    """Whether processing these would block the event loop for too long."""
    return sum(map(len, inputs)) > _LARGE_BYTES or sum(data.count(b",") for data in inputs) > _LARGE_COMMAS


async def offload(work: Callable[[], T], *inputs: bytes, is_costly: bool = False) -> T:
    """Run `work` at once if its inputs are small, else in a thread; there too if it is costly for small ones.

    It may only touch what belongs to this request, and read the store. Raises TooManyRequestsError.
    """
    return await run_in_thread(work) if is_costly or is_large(*inputs) else work()


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread: for work known to be expensive."""
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
