"""`podlife` as a user runs it, in a process of its own, while the test goes on. Most are forked from one that has
imported everything (`warm`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.component.cli import warm
from tests.component.cli.warm import WarmProcess
from tests.kit.wait import until

# How long anything may take that is waited for.
SECONDS = 180.0

Process = asyncio.subprocess.Process | WarmProcess

# Elections: one that is not lost because a machine is busy, and one whose lease is over soon after its end.
LONG_LEASE = (
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
    "--leader-elect-retry-period=200ms",
)
SHORT_LEASE = ("--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=4s")

# Commands that are one process and start no other of their kind: these do not import everything anew each time.
_WARM = ("archive", "controllers", "explain", "gc", "node", "sim")


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


def last_words(result: Result) -> str:
    """What a command that has a log for programs ended with: the last line of that log, and the only one of its level.
    All others are lines of the log too."""
    records = [json.loads(line) for line in result.err.splitlines()]
    [said] = [record["message"] for record in records if record["level"] == "error"]
    assert records[-1]["message"] == said, result.err
    return str(said)


class Running:
    """A command that runs; its standard error is its log."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.log = ""

    async def wait_for(self, *texts: str) -> None:
        """Until the log has one of these texts."""
        assert self._process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while not any(text in self.log for text in texts):
                line = await self._process.stderr.readline()
                assert line, f"it ended without {texts}:\n{self.log}"
                self.log += line.decode()

    async def end(self, number: int = signal.SIGTERM) -> Result:
        """Send it a signal and wait for its end."""
        _signal(self._process, number)
        return await self.result()

    async def result(self) -> Result:
        async with asyncio.timeout(SECONDS):
            out, err = await self._process.communicate()
        assert self._process.returncode is not None
        self.log += err.decode()
        return Result(self._process.returncode, out.decode(), self.log)


def _signal(process: Process, number: int) -> None:
    """The process's own method would take the exit code of one that has just ended away from its watcher."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)


# What whoever runs the tests has set for commands of their own.
_OF_USERS = ("KUBECONFIG", "PODLIFE_ARCHIVE", "PODLIFE_DEBUG", "PODLIFE_GC_POLICY")


def _environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in _OF_USERS}
    return {**plain, "COLUMNS": "200", **more}


@asynccontextmanager
async def started(*arguments: str, **environment: str) -> AsyncIterator[Running]:
    """The command, running for as long as the block lasts and not longer."""
    async with _process(arguments, _environment(**environment)) as process:
        yield Running(process)


@asynccontextmanager
async def _process(
    arguments: tuple[str, ...], environment: dict[str, str], terminal: int | None = None
) -> AsyncIterator[Process]:
    process: Process
    # With a path of its own it is to import other things than the warm one has.
    if arguments[0] in _WARM and environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
        process, ends = await warm.start(arguments, environment, terminal)
    else:
        null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        files = (null, pipe, pipe) if terminal is None else (terminal,) * 3
        process, ends = await _cold(arguments, environment, files), contextlib.ExitStack()
    with ends:
        try:
            yield process
        finally:
            if process.returncode is None:
                _signal(process, signal.SIGKILL)
                await process.communicate()


async def _cold(
    arguments: tuple[str, ...], environment: dict[str, str], files: tuple[int, int, int]
) -> asyncio.subprocess.Process:
    """A process that imports what it needs by itself."""
    stdin, stdout, stderr = files
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podlife",
        *arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment,
    )


class Terminal:
    """A command that believes to run on a terminal; `shown` is what stands there."""

    def __init__(self, process: Process, number: int) -> None:
        self._process = process
        self._number = number
        self.shown = ""
        os.set_blocking(number, False)

    async def wait_for(self, text: str) -> None:
        async with asyncio.timeout(SECONDS):
            while text not in self.shown:
                await self._read()

    async def wait_for_more(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self._read()

    async def _read(self) -> None:
        try:
            self.shown += os.read(self._number, 65536).decode(errors="replace")
        except BlockingIOError:
            await asyncio.sleep(0.02)
        except OSError:
            raise AssertionError(f"it has ended:\n{self.shown}") from None

    def type(self, text: str) -> None:
        os.write(self._number, text.encode())

    async def wait_for_sleep(self) -> None:
        """Until it waits for keys. `input()` handles a signal that comes between its prompt and its read only after the
        next key."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        await until(lambda: stat.read_text().rpartition(") ")[2].startswith("S"), seconds=SECONDS)

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        _signal(self._process, signal.SIGINT)

    async def exit_code(self) -> int:
        async with asyncio.timeout(SECONDS):
            return await self._process.wait()


@asynccontextmanager
async def on_terminal(*arguments: str) -> AsyncIterator[Terminal]:
    """The command on a terminal of its own, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        ours, theirs = pty.openpty()
        stack.callback(os.close, ours)
        try:
            process = await stack.enter_async_context(_process(arguments, _environment(TERM="xterm"), theirs))
        finally:
            os.close(theirs)
        yield Terminal(process, ours)


async def podlife(*arguments: str, **environment: str) -> Result:
    """Run the command to its end."""
    async with started(*arguments, **environment) as running:
        return await running.result()


def processes_of(folder: Path) -> list[str]:
    """What runs for a cluster that keeps its data there: parts are known by their command, containers by their
    environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in said:
            found.append(process.name)
    return found


def write_kubeconfig(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path
