"""A local cluster for the lifetime of this process: starts it, displays it, serves requests, and stops it.

The first signal stops the cluster and gives its pods their grace period, a second one kills the pods, a third one
everything.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from podlife.client import Client, Flags, load
from podlife.clock import SystemClock
from podlife.daemons import event_loop
from podlife.daemons.connection import first_error
from podlife.localcluster import components
from podlife.localcluster.bootstrap_token import BootstrapToken, reachable_url
from podlife.localcluster.cluster import LocalCluster
from podlife.localcluster.cluster_state import AuditTail, ClusterState, follow
from podlife.localcluster.control_socket import serve_requests
from podlife.localcluster.forkserver import ForkServer, Guard
from podlife.localcluster.plan import ClusterPlan, LocalClusterSettings
from podlife.localcluster.state_dir import StateDir
from podlife.localcluster.supervisor import ComponentSupervisor

# A key press may arrive twice if a parent program forwards it.
_SAME_SIGNAL_SECONDS = 0.3
_TRIM_LOGS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class StartedCluster:
    """What a user needs to know about a started cluster. `other_nodes` are left from an earlier run with more nodes."""

    url: str
    kubeconfig: Path
    join_file: Path
    ready_nodes: int
    other_nodes: frozenset[str]
    # Whether it has objects from an earlier run.
    is_restart: bool
    # The address of the page; "" if it is not served.
    page: str = ""


class Display(Protocol):
    """Shows a cluster to its user."""

    def say(self, line: str) -> None: ...

    def started(self, cluster: StartedCluster) -> None: ...

    async def show(self, state: ClusterState) -> None:
        """Run until cancelled."""

    def stopping(self) -> None: ...

    def pods_left(self, count: int) -> None:
        """`count` pods have not terminated yet."""

    def stopped(self, state_dir: StateDir) -> None: ...

    def restore(self) -> None:
        """Leave the terminal as it was: the process is about to exit."""


def run(settings: LocalClusterSettings, state_dir: StateDir, display: Display, guard: Guard) -> None:
    """Run a cluster until a signal stops it. Raises PodlifeError if it cannot start.

    Forks and runs its own event loop, so the process must have neither a loop nor a second thread.
    `guard` runs a component and turns its exceptions into an exit code."""
    state_dir.claim()
    environment = dict(os.environ)
    # The HTTP library loads the system's CAs when imported; none of them is trusted here.
    os.environ.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull)
    components.preload(settings.runtime)
    fork_server = ForkServer.open(components.COMPONENTS, environment, guard)
    try:
        event_loop.run(_Session(ClusterPlan(settings, state_dir), fork_server, display).run())
    except ExceptionGroup as group:
        raise first_error(group) from group


async def _trim_logs(state_dir: StateDir) -> None:
    while True:
        # Before the first wait: logs of an earlier run may be long. On a full disk they stay unchanged.
        with suppress(OSError):
            state_dir.trim_logs()
        await asyncio.sleep(_TRIM_LOGS_SECONDS)


class _Signals:
    """The first signal stops the cluster, the second kills its pods, the third exits."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self.stop = asyncio.Event()
        self.at_once = asyncio.Event()
        self._last = 0.0

    def handle(self) -> None:
        now, last = time.monotonic(), self._last
        self._last = now
        if now - last < _SAME_SIGNAL_SECONDS:
            return
        if self.at_once.is_set():
            # The fork server then stops the remaining components.
            self._display.restore()
            os._exit(130)
        (self.at_once if self.stop.is_set() else self.stop).set()


class _Session:
    def __init__(self, plan: ClusterPlan, fork_server: ForkServer, display: Display) -> None:
        self._plan = plan
        self._fork_server = fork_server
        self._token = BootstrapToken(plan.state_dir.path)
        self._display = display
        self._signals = _Signals(display)
        self._supervisor = ComponentSupervisor(fork_server, display.say)
        self._cluster = LocalCluster(plan, self._supervisor)
        self._is_restart = False

    async def run(self) -> None:
        try:
            with event_loop.signals_handled(self._signals.handle):
                async with asyncio.TaskGroup() as group:
                    supervising = group.create_task(self._supervisor.run(), name="supervisor")
                    await self._run_cluster()
                    supervising.cancel()
        finally:
            # The fork server stops components that are still running.
            await self._fork_server.close()
            self._token.revoke()
            self._plan.state_dir.clear_holder()

    async def _run_cluster(self) -> None:
        cluster, state_dir = self._cluster, self._plan.state_dir
        # The token of a killed run must not be accepted again.
        self._token.revoke()
        if not await self._unless_stopped(cluster.start_apiserver()):
            return
        self._is_restart = state_dir.holder() is not None
        state_dir.record_holder(cluster.url, tuple(each.config for each in self._plan.make_pod_shutdowns()))
        self._token.issue(self._join_url())
        cluster.start_rest()
        async with Client.connect(load(Flags(kubeconfig=str(state_dir.kubeconfig)))) as client:
            state, log = ClusterState(SystemClock()), self._plan.audit_log_path
            # "-" is standard output.
            audit = None if log in ("", "-") else AuditTail(Path(log))
            async with asyncio.TaskGroup() as group:
                beside = [
                    group.create_task(follow(state, client, audit), name="state"),
                    group.create_task(serve_requests(state_dir, cluster), name="requests"),
                ]
                await self._token.publish(client, self._join_url())
                if await self._unless_stopped(cluster.wait_until_ready(state)):
                    await self._show(state)
                for task in beside:
                    task.cancel()
        await self._stop()

    async def _show(self, state: ClusterState) -> None:
        node_names = self._plan.node_names
        started = StartedCluster(
            self._cluster.url,
            self._plan.state_dir.kubeconfig,
            self._token.join_file,
            sum(state.is_ready(name) for name in node_names),
            frozenset(state.nodes) - frozenset(node_names),
            self._is_restart,
            self._cluster.page,
        )
        self._display.started(started)
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(self._display.show(state), name="display"),
                group.create_task(_trim_logs(self._plan.state_dir), name="logs"),
            ]
            await self._signals.stop.wait()
            for task in beside:
                task.cancel()

    def _join_url(self) -> str:
        settings = self._plan.settings
        return reachable_url(self._cluster.url, settings.bind, settings.names)

    async def _stop(self) -> None:
        self._display.stopping()
        last = 0

        def progress(left: int) -> None:
            nonlocal last
            if left != last:
                self._display.pods_left(left)
            last = left

        await self._cluster.stop(self._signals.at_once, progress)
        self._display.stopped(self._plan.state_dir)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run the work; false if a signal came first."""
        loop = asyncio.get_running_loop()
        working = loop.create_task(work, name="start")
        stopped = loop.create_task(self._signals.stop.wait(), name="stop")
        try:
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return True
            return False
        finally:
            for task in (working, stopped):
                task.cancel()
