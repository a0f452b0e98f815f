"""Work on large objects, beside the event loop.

Reading, defaulting and validating an object costs in proportion to its size: microseconds for a pod, seconds for three
megabytes of one. What is small is done at once; what is large is done in a thread, so that nobody else waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from podlife.apiserver.registry.scope import Scope

__all__ = ["aside", "is_large"]

T = TypeVar("T")

_LARGE_BYTES = 64 * 1024


def is_large(scope: Scope) -> bool:
    return len(scope.request.body) > _LARGE_BYTES


async def aside(scope: Scope, work: Callable[[], T]) -> T:
    """What the work gives. It may only touch what belongs to this request, and read the store."""
    return await asyncio.to_thread(work) if is_large(scope) else work()
