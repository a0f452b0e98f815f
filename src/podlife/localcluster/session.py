"""`podlife up` as a process: brings a cluster up, shows it, takes orders, and takes it down again.

The first signal stops the cluster with its pods' grace, a second one ends the pods at once, a third one everything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from podlife.cli.audit_options import STDOUT
from podlife.cli.commands.controllers.nodehealth_options import NodeHealthOptions
from podlife.cli.commands.up.app import UpOptions
from podlife.cli.commands.up.lines import Welcome, in_order
from podlife.cli.commands.up.screen import Screen
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.program import command_for, program
from podlife.client import Client
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.localcluster import components as up_parts
from podlife.localcluster.audit_tail import AuditTail
from podlife.localcluster.bootstrap_token import Joining, reachable_url
from podlife.localcluster.cluster import Cluster
from podlife.localcluster.cluster_state import World, follow
from podlife.localcluster.control_socket import serve_orders
from podlife.localcluster.forkserver import Forks
from podlife.localcluster.plan import Plan
from podlife.localcluster.state_dir import UpFolder, age_seconds, default_folder
from podlife.localcluster.supervisor import Supervisor

__all__ = ["run_up"]

# One press of a key comes twice where a program in between passes it on.
_SAME_SECONDS = 0.3
_LOG_SECONDS = 60.0


def run_up(options: UpOptions, health: NodeHealthOptions, controllers: list[str], verbosity: int) -> None:
    """Until it is stopped. Raises PodlifeError when it cannot start."""
    folder = UpFolder(options.data or default_folder())
    folder.claim()
    environment = dict(os.environ)
    # The HTTP library reads all of the system's authorities when it is loaded; nobody here trusts any of them.
    os.environ.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull)
    up_parts.preload(options.runtime)
    forks = Forks.open(up_parts.PARTS, environment)
    plan = Plan(options, health, tuple(controllers), folder, verbosity)
    try:
        loop.run(_Up(plan, forks).run())
    except ExceptionGroup as group:
        raise _first(group) from group


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Of those who failed together, the first tells enough."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


async def _keep_logs_short(folder: UpFolder) -> None:
    while True:
        # At once: what an earlier run has left may be long already. On a full disk they stay as they are.
        with suppress(OSError):
            folder.trim_logs()
        await asyncio.sleep(_LOG_SECONDS)


class _Signals:
    """The first asks, the second hurries, the third ends."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.stop = asyncio.Event()
        self.at_once = asyncio.Event()
        self._last = 0.0

    @contextmanager
    def taken(self) -> Iterator[None]:
        event_loop = asyncio.get_running_loop()
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        for number in numbers:
            event_loop.add_signal_handler(number, self._take)
        try:
            yield
        finally:
            for number in numbers:
                event_loop.remove_signal_handler(number)

    def _take(self) -> None:
        now, last = time.monotonic(), self._last
        self._last = now
        if now - last < _SAME_SECONDS:
            return
        if self.at_once.is_set():
            # The nursery sees it, and ends what is left.
            self._screen.terminal.restore()
            os._exit(130)
        (self.at_once if self.stop.is_set() else self.stop).set()


class _Up:
    def __init__(self, plan: Plan, forks: Forks) -> None:
        self._plan = plan
        self._forks = forks
        self._joining = Joining(plan.folder.path)
        self._screen = Screen()
        self._signals = _Signals(self._screen)
        self._supervisor = Supervisor(forks, self._screen.say)
        self._cluster = Cluster(plan, self._supervisor)
        self._is_restart = False

    async def run(self) -> None:
        try:
            with self._signals.taken():
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(self._supervisor.run(), name="parts")
                    await self._live()
                    reading.cancel()
        finally:
            # What still runs is ended by the nursery.
            await self._forks.close()
            self._joining.close()
            self._plan.folder.unsign()

    async def _live(self) -> None:
        cluster, folder = self._cluster, self._plan.folder
        # A token of an `up` that was killed: no server may take it again.
        self._joining.close()
        if not await self._unless_stopped(cluster.start_apiserver()):
            return
        self._is_restart = folder.holder() is not None
        folder.sign(cluster.url, tuple(each.order for each in self._plan.make_stoppers()))
        self._joining.open(self._join_url())
        cluster.start_rest()
        connection = load_connection(ConnectionOptions(kubeconfig=str(folder.kubeconfig)))
        async with Client.connect(connection) as client:
            world = World(SystemClock())
            async with asyncio.TaskGroup() as group:
                beside = [
                    group.create_task(follow(world, client, self._audit_tail()), name="world"),
                    group.create_task(serve_orders(folder, cluster), name="orders"),
                ]
                await self._joining.publish(client, self._join_url())
                if await self._unless_stopped(cluster.wait_until_ready(world)):
                    await self._show(world)
                for task in beside:
                    task.cancel()
        await self._stop()

    async def _show(self, world: World) -> None:
        welcome = Welcome(
            self._cluster.url,
            self._plan.folder.kubeconfig,
            self._joining.file,
            sum(world.is_ready(name) for name in self._plan.node_names),
            program(),
            self._is_restart,
        )
        self._screen.say(welcome.text(age_seconds()))
        if left := sorted(world.nodes.keys() - set(self._plan.node_names), key=in_order):
            self._screen.say(f"of earlier, and not started here: {', '.join(left[:10])}")
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(self._screen.show(world), name="view"),
                group.create_task(_keep_logs_short(self._plan.folder), name="logs"),
            ]
            await self._signals.stop.wait()
            for task in beside:
                task.cancel()

    def _audit_tail(self) -> AuditTail | None:
        path = self._plan.audit_log_path
        return None if path in ("", STDOUT) else AuditTail(Path(path))

    def _join_url(self) -> str:
        options = self._plan.options
        return reachable_url(self._cluster.url, options.bind, tuple(options.name or ()))

    async def _stop(self) -> None:
        say = self._screen.say
        say("stopping: pods are given their grace; Ctrl-C once more ends them at once")
        last = 0

        def progress(left: int) -> None:
            nonlocal last
            if left != last:
                say(f"{left} pod{'' if left == 1 else 's'} to end")
            last = left

        await self._cluster.stop(self._signals.at_once, progress)
        folder = self._plan.folder
        say(f"stopped; `{command_for(folder, 'up')}` goes on where it was (data: {folder.path})")

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """False when a signal came first."""
        event_loop = asyncio.get_running_loop()
        working = event_loop.create_task(work, name="start")
        stopped = event_loop.create_task(self._signals.stop.wait(), name="stop")
        try:
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return True
            return False
        finally:
            for task in (working, stopped):
                task.cancel()
