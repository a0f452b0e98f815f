"""A terminal under a live view: it does not echo, and is as it was before, however the view ends."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

WAIT_SECONDS = 60.0
# A view that ends as its first argument says, once a line says so.
PROGRAM = """
import asyncio, os, signal, sys
from podlife.cli.commands.up.terminal import QuietTerminal

async def main():
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    with QuietTerminal(lambda: print("redrawn", flush=True)).entered():
        print("shown", flush=True)
        await done.wait()
        if sys.argv[1] == "exception":
            raise SystemExit(3)
        if sys.argv[1] == "exit":
            sys.exit(0)

asyncio.run(main())
"""


class Terminal:
    def __init__(self, end: str) -> None:
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            # A session and a terminal of its own, as in a window.
            [sys.executable, "-c", PROGRAM, end],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # noqa: PLW1509 - takes no lock
        )
        self.seen = b""

    @property
    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, self.seen
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 4096)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def terminal(end: str = "return") -> Iterator[Terminal]:
    made = Terminal(end)
    try:
        made.wait_for(b"shown")
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("end", ["return", "exception", "exit"])
def test_what_is_typed_is_not_shown_and_the_terminal_is_as_before_at_the_end(end: str) -> None:
    with terminal(end) as shown:
        assert not shown.echoes
        os.write(shown.master, b"typed")
        shown.process.send_signal(signal.SIGTERM)
        shown.process.wait(WAIT_SECONDS)
        assert termios.tcgetattr(shown.slave) == shown.before
        assert b"typed" not in shown.seen
        # Nor is it left for whoever reads next.
        assert not select.select([shown.slave], [], [], 0)[0]


def test_stopped_it_gives_the_terminal_back_and_takes_it_again_when_it_goes_on() -> None:
    with terminal() as shown:
        shown.process.send_signal(signal.SIGTSTP)
        shown.wait_for(b"\x1b[?25h")
        assert shown.echoes
        shown.process.send_signal(signal.SIGCONT)
        shown.wait_for(b"redrawn")
        assert not shown.echoes
