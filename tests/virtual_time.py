"""An event loop in which waiting takes no time: when nothing is left to do, its clock jumps to the next timer.

`@virtual_time` runs an async test on such a loop. Sockets work, but nobody waits for them while a timer is due;
so use it where everything happens in one process.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

__all__ = ["VirtualTimeLoop", "virtual_time"]

P = ParamSpec("P")


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout is None or timeout <= 0:
            # With no timer at all only a thread or a socket can wake the loop: wait for it, but not for ever.
            return ready or super().select(10 if timeout is None else 0)
        self.loop.jump(timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self._virtual_now = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual_now

    def jump(self, seconds: float) -> None:
        self._virtual_now += seconds


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test under virtual time; a task that it leaves behind fails it."""

    async def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        await test(*args, **kwargs)
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, f"tasks left behind: {left}"

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(checked(*args, **kwargs))

    return run
