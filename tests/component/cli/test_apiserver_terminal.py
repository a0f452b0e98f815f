"""What becomes of a server, and of the folder it made for itself, when its terminal is closed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def begun(folder: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A server that keeps nothing, and is only just starting; its temporary folder is made within this one."""
    arguments = [*before, sys.executable, "-m", "podlife", "apiserver", "--memory", "--port", "0"]
    server = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


@contextmanager
def started(folder: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """One that is ready; its identities are in its temporary folder."""
    with begun(folder, *before) as server:
        assert server.stdout is not None
        assert any("Ctrl-C stops it." in line for line in server.stdout)
        assert list(folder.iterdir())
        yield server


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_stopped_leaves_no_credentials_behind(tmp_path: Path, number: int) -> None:
    with started(tmp_path) as server:
        server.send_signal(number)
        assert server.wait(60) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("made", ["podlife-*", "podlife-*/tokens.csv"], ids=["folder", "credentials"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_stopped_while_it_starts_it_leaves_no_credentials_behind(
    tmp_path: Path, number: int, made: str
) -> None:
    """Before it serves it becomes another program: there is no moment at which nobody would put the folder away."""
    deadline = time.monotonic() + 60
    with begun(tmp_path) as server:
        while not list(tmp_path.glob(made)):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
        server.send_signal(number)
        assert server.wait(60) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
def test_a_server_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    """Asked of the system: to wait and see that a process does not end would take for ever."""
    with started(tmp_path, "nohup") as server:
        status = Path(f"/proc/{server.pid}/status").read_text()
        (ignored,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:"))
        server.terminate()
    assert ignored & 1 << (signal.SIGHUP - 1)
