"""The cluster of a demo: `podlife up` in its own process and a temporary directory, with times short enough to watch.

It ends with the demo, however that ends, unless it is kept. A node fails like a machine that hangs: SIGSTOP stops its
kubelet, which sends nothing, while its pods keep running.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from podlife.errors import PodlifeError
from podlife.kubelet.runtimes.process.supervisor.kernel import die_with_parent
from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir

_START_SECONDS = 60.0
# Further apart than `podlife up` treats as one signal.
_APART_SECONDS = 0.6
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class DemoTimes:
    """Timeouts that are minutes in a normal cluster."""

    lease_seconds: int = 4
    monitor_seconds: int = 1
    monitor_grace_seconds: int = 8
    toleration_seconds: int = 5
    quarantine_seconds: int = 8

    @property
    def renew_seconds(self) -> float:
        return self.lease_seconds / 4

    def flags(self) -> list[str]:
        return [
            f"--node-lease-duration-seconds={self.lease_seconds}",
            f"--node-monitor-period={self.monitor_seconds}s",
            f"--node-monitor-grace-period={self.monitor_grace_seconds}s",
            f"--default-not-ready-toleration-seconds={self.toleration_seconds}",
            f"--default-unreachable-toleration-seconds={self.toleration_seconds}",
            f"--pod-gc-quarantine={self.quarantine_seconds}s",
        ]


class DemoCluster:
    """With `is_kept` it keeps running after the demo."""

    def __init__(self, nodes: int, times: DemoTimes, *, is_kept: bool, has_page: bool = False) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="podlife-demo-"))
        self.nodes = [f"node-{number}" for number in range(nodes)]
        self.times = times
        self.is_kept = is_kept
        self.has_page = has_page
        self.kubeconfig = self.path / "admin.kubeconfig"
        self.log = self.path / "up.log"
        self._state_dir = StateDir(self.path)
        # Process descriptors of their kubelets: a PID could be reused.
        self._frozen: dict[str, int] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """For display: as a user would type it."""
        return [
            *("podlife", "up", "--nodes", str(len(self.nodes)), "--port", "0", "--data", str(self.path)),
            *self.times.flags(),
            *(() if self.has_page else ("--no-ui",)),
        ]

    def begin(self) -> None:
        """Start it without waiting."""
        ending = None if self.is_kept else functools.partial(die_with_parent, os.getpid(), signal.SIGTERM)
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-m", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C goes to the demo only, which stops the cluster in order.
                start_new_session=True,
                preexec_fn=ending,  # noqa: PLW1509 - one system call, and no second thread is running
            )

    async def wait_until_served(self) -> None:
        """Wait until its API server responds. Raises PodlifeError."""
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while not ((holder := self._state_dir.holder()) and holder.is_alive and holder.url):
            if self._process.poll() is not None:
                raise PodlifeError(f"the cluster of the demo has ended: {self._last_words()}")
            if asyncio.get_running_loop().time() > deadline:
                raise PodlifeError(
                    f"the cluster did not start in {_START_SECONDS:.0f} s; last log line: {self._last_words()}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    def _last_words(self) -> str:
        """The last line of its log, which is removed with its directory."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].removeprefix("podlife: ") if lines else "nothing"

    async def page(self) -> str:
        """The address of its page. Raises PodlifeError when it is not served in time."""
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            status = await asyncio.to_thread(ask, self._state_dir, {"do": "status"})
            if status["page"]:
                return str(status["page"])
            await asyncio.sleep(_POLL_SECONDS)
        raise PodlifeError(f"the page was not served in {_START_SECONDS:.0f} s; {self.log} may say why")

    # One node

    async def kubelet_of(self, node: str) -> int:
        """The PID of its kubelet. Raises PodlifeError if it is not running."""
        status = await asyncio.to_thread(ask, self._state_dir, {"do": "status"})
        for part in status["parts"]:
            if part["name"] == node and part["pid"]:
                return int(part["pid"])
        raise PodlifeError(
            f"the kubelet of {node} is not running: --keep keeps its log in {self._state_dir.logs}"
        )

    async def freeze(self, node: str) -> int:
        """Stop its kubelet with SIGSTOP; return the PID."""
        pid = await self.kubelet_of(node)
        process = self._frozen[node] = os.pidfd_open(pid)
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        return pid

    def thaw(self, node: str) -> None:
        process = self._frozen.pop(node)
        # A user may have killed it meanwhile.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGCONT)
        os.close(process)

    async def restart(self, node: str) -> None:
        """Kill its kubelet, which `podlife up` restarts; its pods keep running."""
        os.kill(await self.kubelet_of(node), signal.SIGKILL)

    async def end(self) -> None:
        """Stop it and remove its directory, unless it is kept. Raises PodlifeError if something is left."""
        for node in list(self._frozen):
            self.thaw(node)
        if self._process is None or self.is_kept:
            return
        await self._stop(self._process)
        await asyncio.to_thread(shutil.rmtree, self.path, ignore_errors=True)

    async def _stop(self, process: subprocess.Popen[bytes]) -> None:
        for seconds in (_APART_SECONDS, _STOP_SECONDS):
            # The second signal kills the pods without their grace period.
            process.terminate()
            if await _has_ended(process, seconds):
                return
        process.kill()
        process.wait(_STOP_SECONDS)
        raise PodlifeError(f"the cluster of the demo did not end in {_STOP_SECONDS:.0f} s; see {self.path}")


async def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while process.poll() is None:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True
