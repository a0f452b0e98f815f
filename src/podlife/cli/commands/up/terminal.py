"""Turns off the echo of the terminal during a live view.

The terminal is restored however the view ends: in order, by an exception, when the process is stopped with Ctrl-Z and
while it is in the background. What was typed meanwhile is dropped, so that the shell does not execute it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_ECHO_FLAGS = 3
_SHOW_CURSOR, _HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"


class QuietTerminal:
    """`redraw` is called when the view is in the foreground again."""

    def __init__(self, redraw: Callable[[], None] = lambda: None) -> None:
        self._redraw = redraw
        self._before: list[Any] | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Needs a running event loop. Does nothing without a terminal."""
        if not sys.stdin.isatty():
            yield
            return
        loop = asyncio.get_running_loop()
        self._silence()
        atexit.register(self.restore)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        loop.add_signal_handler(signal.SIGCONT, self._resume)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)
            loop.remove_signal_handler(signal.SIGCONT)
            self.restore()
            atexit.unregister(self.restore)

    def restore(self) -> None:
        """May be called at any time, and more than once."""
        before, self._before = self._before, None
        # A terminal that was closed has nothing left to restore.
        with suppress(OSError, termios.error, ValueError):
            if before is not None and _is_in_foreground():
                termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)

    def _silence(self) -> None:
        with suppress(OSError, termios.error, ValueError):
            # A process in the background would be stopped for touching the terminal.
            if self._before is None and _is_in_foreground():
                before = termios.tcgetattr(sys.stdin)
                quiet = list(before)
                quiet[_ECHO_FLAGS] &= ~(termios.ECHO | termios.ECHONL)
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
                self._before = before

    def _suspend(self) -> None:
        """Ctrl-Z: give the terminal back, and stop as anybody would."""
        self.restore()
        _write(_SHOW_CURSOR)
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTSTP)
        # Here it goes on after `fg` or `bg`.
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    def _resume(self) -> None:
        self._silence()
        if self._before is not None:
            _write(_HIDE_CURSOR)
            self._redraw()


def _is_in_foreground() -> bool:
    return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _write(sequence: bytes) -> None:
    with suppress(OSError, ValueError):
        os.write(sys.stdout.fileno(), sequence)
