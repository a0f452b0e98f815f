"""`podlife` as a user runs it, in a process of its own, while the test goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Result", "Running", "assert_one_line", "eventually", "podlife", "started", "write_kubeconfig"]

SECONDS = 60.0


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def assert_one_line(result: Result, *words: str) -> None:
    """A mistake of the user's: exit code 1, nothing on standard output, one line that has these words."""
    assert (result.code, result.out) == (1, ""), result
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("podlife: ")
    for word in words:
        assert word in lines[0]


class Running:
    """A command that runs; its standard error is its log."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.log = ""

    async def wait_for(self, text: str) -> None:
        """Until the log has this text."""
        assert self._process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while text not in self.log:
                line = await self._process.stderr.readline()
                assert line, f"it ended without {text!r}:\n{self.log}"
                self.log += line.decode()

    async def end(self, number: int = signal.SIGTERM) -> Result:
        """Send it a signal and wait for its end."""
        self._process.send_signal(number)
        return await self.result()

    async def result(self) -> Result:
        async with asyncio.timeout(SECONDS):
            out, err = await self._process.communicate()
        assert self._process.returncode is not None
        self.log += err.decode()
        return Result(self._process.returncode, out.decode(), self.log)


def _environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "PODLIFE_DEBUG")}
    return {**plain, "COLUMNS": "200", **more}


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[Running]:
    """The command, running for as long as the block lasts and not longer."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podlife",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(**environment),
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def podlife(*arguments: str, **environment: str) -> Result:
    """Run the command to its end."""
    async with started(*arguments, **environment) as running:
        return await running.result()


async def eventually(is_so: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """Until the function says so; it may be one that has to be awaited."""
    async with asyncio.timeout(seconds):
        while True:
            answer = is_so()
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer:
                return
            await asyncio.sleep(0.02)


def write_kubeconfig(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path
