"""An event loop with virtual time: when no task can run, its clock advances to the next timer.

`@virtual_time` runs an async test on such a loop. Time waits for work that was handed to an executor. Sockets and other
threads work, but time does not wait for them while a timer is due, so use it for tests within one process. Runs are
deterministic: tasks are numbered, and sets of tasks are iterated by number, not by memory address.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import selectors
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec

from podlife.errors import PodlifeError

P = ParamSpec("P")

# Maximum virtual time: otherwise a wait for something that never happens continues through all heartbeats.
_MOST_SECONDS = 90 * 86_400.0
# Maximum number of steps without time passing: components that undo each other's work would never stop.
_MOST_ROUNDS = 200_000
_CREEP_ROUNDS = 10_000
# How early a timer may fire: asyncio's clock resolution.
_RESOLUTION_SECONDS = time.get_clock_info("monotonic").resolution
# Without timers, or while an executor works, only a thread or a socket can wake the loop: wait for it, with a limit.
_OUTSIDE_SECONDS = 10.0


class EndlessWaitError(PodlifeError):
    """Too much virtual time has passed."""


class _NumberedTask(asyncio.Task[Any]):
    """A task whose position in a set is the same in every run."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], *, number: int, **settings: Any) -> None:
        # First: the base class adds itself to a set of all tasks.
        self._number = number
        super().__init__(coroutine, **settings)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _JumpingSelector(selectors.DefaultSelector):
    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        self.loop.count_round()
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.loop.under_way:
            if ready := super().select(_OUTSIDE_SECONDS):
                return ready
            # It hangs: time passes again.
            self.loop.under_way.clear()
        if self.loop.wake_idlers():
            return []
        if timeout is None:
            return super().select(_OUTSIDE_SECONDS)
        self.loop.jump(timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time` starts at 0. `most_seconds` is the maximum."""

    def __init__(self, *, most_seconds: float = _MOST_SECONDS) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self._virtual_now = 0.0
        self._most_seconds = most_seconds
        self._rounds = 0
        self._idlers: list[asyncio.Future[None]] = []
        self._numbers = itertools.count(1)
        # What executors work on.
        self.under_way: set[asyncio.Future[Any]] = set()
        super().__init__(selector)
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._virtual_now

    def count_round(self) -> None:
        self._rounds += 1
        if self._rounds % _CREEP_ROUNDS == 0:
            # A timer may fire early by the clock's resolution. A task that then waits for the rest, which is zero,
            # would loop: as a real clock would, this one advances meanwhile.
            self._virtual_now += _RESOLUTION_SECONDS
        if self._rounds > _MOST_ROUNDS:
            self._rounds = 0
            raise EndlessWaitError(
                f"at {self._virtual_now:g} s of virtual time tasks keep running without time passing; "
                "add a delay to one of them"
            )

    def jump(self, seconds: float) -> None:
        self._rounds = 0
        self._virtual_now += seconds
        if self._virtual_now > self._most_seconds:
            days = self._most_seconds / 86_400
            raise EndlessWaitError(
                f"{days:g} days of virtual time have passed: a task waits for something that never happens; "
                "add a timeout to that wait (Cluster.until has one)"
            )

    # Any function with its arguments.
    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self.under_way.add(future)
        future.add_done_callback(self.under_way.discard)
        return future

    async def idle(self) -> None:
        """Wait until everything has run that can run before time passes."""
        waiter = self.create_future()
        self._idlers.append(waiter)
        await waiter

    def wake_idlers(self) -> bool:
        idlers, self._idlers = self._idlers, []
        for waiter in idlers:
            if not waiter.done():
                waiter.set_result(None)
        return bool(idlers)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, /, **settings: Any
    ) -> asyncio.Task[Any]:
        return _NumberedTask(coroutine, number=next(self._numbers), loop=loop, **settings)


class LoopClock:
    """The wall clock of a machine: follows the event loop's time, with an offset."""

    def __init__(self, *, off_seconds: float = 0.0) -> None:
        self._start = datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=off_seconds)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=asyncio.get_running_loop().time())


def run_virtually(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it under virtual time. Raises AssertionError if it leaves a task behind."""

    async def checked() -> None:
        await main()
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, f"tasks left behind: {left}"

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(checked())


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test under virtual time; it fails if it leaves a task behind."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtually(lambda: test(*args, **kwargs))

    return run
