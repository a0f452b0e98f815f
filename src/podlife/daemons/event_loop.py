"""The event loop of a command, and what ends it."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["hold_back_signals", "run", "stopped_by_signals"]

T = TypeVar("T")

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to its end, on the fastest loop there is."""
    # Objects come by the hundred thousand, and hardly any cycles with them: looking for those can wait.
    gc.set_threshold(50_000, 20, 50)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def hold_back_signals() -> None:
    """What would end the process waits from now on until `stopped_by_signals` can act on it, even if the process
    becomes another program meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM within the block calls `stop`; a second one ends the process at once.

    A terminal that is closed stops it as well, unless it was started to outlive that (nohup)."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def let_go() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def interrupted() -> None:
        let_go()
        stop()

    for number in numbers:
        loop.add_signal_handler(number, interrupted)
    # Those that were held back come now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    try:
        yield
    finally:
        let_go()
