"""A component of podlife as a process that tests stop, kill and restart on the same data."""

from __future__ import annotations

import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.kit.real_parts import tail
from tests.kit.wait import until_blocking

START_SECONDS = 180.0
END_SECONDS = 60.0

P = TypeVar("P", bound="ComponentProcess")


class ComponentProcess(ABC):
    """To its clients it is the same component after each restart."""

    _stop_signal = signal.SIGTERM

    def __init__(self, folder: Path, name: str, ready: str) -> None:
        """`ready` is the text it prints when it is ready."""
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{name}.log"
        self._ready = ready.encode()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def arguments(self) -> list[str]:
        """The arguments of `podlife`."""

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "podlife", *self.arguments]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text()

    def begin(self) -> None:
        """Start it without waiting."""
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.begin()
        try:
            until_blocking(self._is_ready, seconds=START_SECONDS)
        except AssertionError:
            raise AssertionError(tail(self.log)) from None

    def _is_ready(self) -> bool:
        assert self.is_running
        return self._ready in self.log.read_bytes()

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, *, seconds: float = START_SECONDS) -> int:
        """Wait for its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        """As `kill -9`: it cannot clean up."""
        self.signal(signal.SIGKILL)
        self.wait(seconds=END_SECONDS)

    def stop(self) -> int:
        """Stop it as a user does, and return its exit code."""
        self.signal(self._stop_signal)
        return self.wait()


@contextmanager
def running(process: P) -> Iterator[P]:
    """Start it, and kill it when the block is left."""
    try:
        process.start()
        yield process
    finally:
        if process.is_running:
            process.kill()
