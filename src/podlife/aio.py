"""Task supervision and interruptible waiting.

A component owns one `TaskGroup` and starts its tasks there. Where a task must outlive the call that starts
it, `spawn` gives it a name and hands its failure to its owner: nothing dies silently. Every wait has a
deadline, measured in the event loop's own time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(
    coroutine: Coroutine[Any, Any, T], *, name: str, on_failure: Callable[[BaseException], None]
) -> asyncio.Task[T]:
    """Start a named task; `on_failure` is called if it ends with an exception other than cancellation."""
    task = asyncio.get_running_loop().create_task(coroutine, name=name)

    def ended(done: asyncio.Task[T]) -> None:
        if not done.cancelled() and (failure := done.exception()) is not None:
            on_failure(failure)

    task.add_done_callback(ended)
    return task


async def wait_until_set(event: asyncio.Event, *, seconds: float) -> bool:
    """Wait for the event, but no longer than `seconds`; says whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def cancel_and_wait(*tasks: asyncio.Task[Any], seconds: float = 5.0) -> None:
    """Cancel the tasks and wait until they have ended, within a bound; their own failures are not raised."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


async def finish_despite_cancel(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run the work to its end even if the caller is cancelled; then raise CancelledError, or what the work raised.

    A call to a runtime takes effect whether or not its caller waits: a container created after its pod was observed for
    the last time would run for ever.
    """
    task = spawn(work, name=name, on_failure=lambda _: None)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


def only_failure(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The one failure in a group, however deep; None where there are several."""
    if len(group.exceptions) > 1:
        return None
    [failure] = group.exceptions
    return only_failure(failure) if isinstance(failure, BaseExceptionGroup) else failure
