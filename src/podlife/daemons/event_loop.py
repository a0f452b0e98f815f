"""The event loop of a process, and the signals that shut it down."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

Shutdown = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""A context that calls the function it is given once, when the daemon inside it should stop."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to completion, on uvloop where it is installed."""
    # Controllers allocate hundreds of thousands of objects and hardly any cycles: collect rarely.
    gc.set_threshold(50_000, 20, 50)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def never_stopped(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """A `Shutdown` for daemons that are only stopped by cancellation."""
    return nullcontext()


def hold_back_signals() -> None:
    """Block terminating signals until `stopped_by_signals` handles them, even across an exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


@contextmanager
def stopped_by_signals(
    stop: Callable[[], None], *, exit_after_seconds: float | None = None
) -> Iterator[None]:
    """Call `stop` on the first SIGINT or SIGTERM within the block; a second one ends the process at once.

    Closing the terminal (SIGHUP) stops it as well, unless it was started to outlive that (nohup). With
    `exit_after_seconds` the process exits with 1 when it still runs so long after the first signal."""

    def interrupted() -> None:
        handlers.close()
        if exit_after_seconds is not None:
            _exit_after(exit_after_seconds)
        stop()

    with ExitStack() as handlers:
        handlers.enter_context(signals_handled(interrupted))
        # Signals that were held back are delivered here.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        yield


@contextmanager
def signals_handled(handle: Callable[[], None]) -> Iterator[None]:
    """Call `handle` on each signal that would end the process."""
    loop = asyncio.get_running_loop()
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    numbers = [each for each in _ENDING if each is not signal.SIGHUP or not is_nohup]
    for number in numbers:
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _exit_after(seconds: float) -> None:
    """Exit even if threads are busy, for which the interpreter would wait."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    timer.start()
