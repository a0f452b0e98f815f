"""A call to the runtime that was begun is seen to its end, also when whoever wanted it is cancelled.

What was asked of a runtime happens whether or not somebody waits for it. Who ends a pod looks at what there is, and a
sandbox or container that came to be after that look would run for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from podlife.aio import spawn

__all__ = ["to_its_end"]

T = TypeVar("T")


async def to_its_end(work: Coroutine[Any, Any, T], name: str) -> T:
    """Raises what the work raises; when cancelled, CancelledError, but not before the work has ended."""
    task = spawn(work, name=name, on_failure=lambda _: None)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
