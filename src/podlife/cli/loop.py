"""The event loop of a command, and what ends it."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["run", "stopped_by_signals"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to its end, on the fastest loop there is."""
    # Objects come by the hundred thousand, and hardly any cycles with them: looking for those can wait.
    gc.set_threshold(50_000, 20, 50)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


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
    try:
        yield
    finally:
        let_go()
