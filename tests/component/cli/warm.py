"""Commands under test as processes of their own, without half a second of imports for each of them.

One process per test run has imported what the commands need; every command is forked from it, gets the files,
arguments, environment and folder that it would have got, and ends as a program of its own: what it writes, how it
takes a signal and its exit code are the command's. What a start of the interpreter does (the imports themselves,
options of the interpreter) is left to those tests that start one.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import json
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_HEADER = struct.Struct("!I")
_FILES = 4  # standard input, output and error, and where its number and its exit code are written


class WarmProcess:
    """As much of asyncio's process as tests of commands use."""

    def __init__(self, report: asyncio.StreamReader, pid: int) -> None:
        self._report = report
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    async def wait(self) -> int:
        # Cancelled and waited for again it still finds the line: nothing is taken before all of it is there.
        if self.returncode is None:
            self.returncode = int(await self._report.readuntil(b"\n"))
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        out, err, _ = await asyncio.gather(_rest(self.stdout), _rest(self.stderr), self.wait())
        return out, err


async def _rest(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()


async def start(
    arguments: tuple[str, ...], environment: dict[str, str], terminal: int | None = None
) -> tuple[WarmProcess, contextlib.ExitStack]:
    """The process, and what to close when it has ended. Without a terminal it has nothing to read, and pipes."""
    ends = contextlib.ExitStack()
    theirs: list[int] = []
    try:
        pipes = []
        if terminal is None:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
            pipes = [await _pipe(ends, theirs), await _pipe(ends, theirs)]
        else:
            theirs += [os.dup(terminal) for _ in range(3)]
        report = await _pipe(ends, theirs)
        _ask({"arguments": arguments, "environment": environment, "folder": str(Path.cwd())}, theirs)
    except BaseException:
        ends.close()
        raise
    finally:
        for number in theirs:
            os.close(number)
    process = WarmProcess(report, int(await report.readuntil(b"\n")))
    if pipes:
        process.stdout, process.stderr = pipes
    return process, ends


async def _pipe(ends: contextlib.ExitStack, theirs: list[int]) -> asyncio.StreamReader:
    ours, their = os.pipe()
    theirs.append(their)
    reader = asyncio.StreamReader()
    file = os.fdopen(ours, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    ends.callback(transport.close)
    return reader


def _ask(request: dict[str, Any], files: list[int]) -> None:
    line = _line()
    body = json.dumps(request).encode()
    socket.send_fds(line, [_HEADER.pack(len(body))], files)
    line.sendall(body)


@cache
def _line() -> socket.socket:
    """To the process that is forked from. It ends when nobody is left at this end."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[3],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# What follows runs in the process that is forked from.


def _serve(line: socket.socket) -> list[str]:
    """Returns in a command's own process, with its arguments."""
    while True:
        header, files, _, _ = socket.recv_fds(line, _HEADER.size, _FILES)
        if not header:
            sys.exit()
        # Not a byte more: with it would come, and be lost, the files of the next one.
        body = line.recv(_HEADER.unpack(header)[0], socket.MSG_WAITALL)
        if os.fork() == 0:
            return _keep(json.loads(body), files)
        for number in files:
            os.close(number)
        # Those that ended since the last request.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(request: dict[str, Any], files: list[int]) -> list[str]:
    """The parent of one command, and its child, the command itself; only the child returns."""
    pid = os.fork()
    if pid == 0:
        return _become(request, files)
    # A signal for the whole group is for the command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    *standard, report = files
    for number in standard:
        os.close(number)
    os.write(report, b"%d\n" % pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(report, b"%d\n" % code)
    os._exit(0)


def _become(request: dict[str, Any], files: list[int]) -> list[str]:
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.closerange(3, 1024)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    return list(request["arguments"])


def _import_all() -> None:
    for package in ("podlife.cli", "podlife.client", "podlife.daemons"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    with contextlib.suppress(ImportError):
        import_module("uvloop")
    # Forked processes do not go through all of this again when they look for garbage.
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    sys.argv = ["podlife", *_serve(socket.socket(fileno=int(sys.argv[1])))]
    import_module("podlife.cli.main").main()
