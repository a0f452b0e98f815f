"""The parts of a cluster on one machine: started in order, stopped in the reverse, a node taken out and put back.

Start: the API server; then controllers and nodes, all at once. Stop: the controllers, so that nobody wants more; the
nodes' agents; the pods, with their grace; the API server last. Every step has a deadline.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from podlife.daemons.kubeconfigs import make_kubeconfig
from podlife.errors import ConfigError
from podlife.explain import SIMULATED_NODES
from podlife.localcluster.cluster_state import World
from podlife.localcluster.plan import Plan, keep_port
from podlife.localcluster.supervisor import Supervised, Supervisor
from podlife.pki.ca import write_private

__all__ = ["Cluster"]

_READY_SECONDS, _READY_SECONDS_EACH = 60.0, 0.2
_END_SECONDS = 15.0
# Beyond the grace that was given: for what is then ended at once.
_MARGIN_SECONDS = 10.0
_LOOK_SECONDS = 0.05


class Cluster:
    def __init__(self, plan: Plan, supervisor: Supervisor) -> None:
        self.plan = plan
        self.url = ""
        self._supervisor = supervisor
        self._apiserver = plan.make_apiserver()
        self._controllers = plan.make_controllers()
        self._nodes = plan.make_nodes()
        # Those of a fleet that were stopped: it has them all in one process.
        self._silent: set[str] = set()

    @property
    def parts(self) -> list[Supervised]:
        return [self._apiserver, self._controllers, *self._nodes]

    async def start_apiserver(self) -> None:
        """Raises PodlifeError with its reason when it does not serve."""
        self._supervisor.start(self._apiserver)
        await self._ready(self._apiserver)
        self.url = self._apiserver.answer
        keep_port(self._apiserver, self.url)

    def start_rest(self) -> None:
        self._supervisor.start(self._controllers)
        if not self.plan.is_simulated:
            for name in self.plan.node_names:
                self._give_identity(name)
        elif self._nodes:
            self._give_simulated_identity()
        for part in self._nodes:
            self._supervisor.start(part)

    async def wait_until_ready(self, world: World) -> None:
        """Raises PodlifeError when a part ends, or is not ready in time."""
        await self._ready(self._controllers)
        for name in self.plan.node_names:
            await self._ready(self._part_of(name), partial(world.is_at_work, name))
        self._supervisor.is_up = True

    async def stop(self, at_once: asyncio.Event, progress: Callable[[int], None]) -> None:
        """`progress` is told how many pods have not ended yet."""
        self._supervisor.is_up = False
        await self._supervisor.stop([self._controllers], seconds=_END_SECONDS)
        await self._supervisor.stop(self._nodes, seconds=_END_SECONDS)
        await self._stop_pods(at_once, progress)
        await self._supervisor.stop([self._apiserver], seconds=_END_SECONDS)

    async def _stop_pods(self, at_once: asyncio.Event, progress: Callable[[int], None]) -> None:
        stoppers = self.plan.make_stoppers()
        for each in stoppers:
            self._supervisor.start(each)
        event_loop = asyncio.get_running_loop()
        deadline = event_loop.time() + self.plan.options.stop_timeout + _MARGIN_SECONDS
        is_hurried = False
        while not all(each.ended.is_set() for each in stoppers) and event_loop.time() < deadline:
            progress(sum(each.left or 0 for each in stoppers))
            if at_once.is_set() and not is_hurried:
                is_hurried = True
                deadline = min(deadline, event_loop.time() + _MARGIN_SECONDS)
                for each in stoppers:
                    self._supervisor.signal(each, signal.SIGTERM)
            await asyncio.sleep(_LOOK_SECONDS)
        await self._supervisor.stop(stoppers, seconds=0)

    # One node

    async def stop_node(self, name: str) -> None:
        """Its agent falls silent, its pods run on; nobody starts it again. Raises ConfigError for an unknown one."""
        part = self._part_of(name)
        if self.plan.is_simulated:
            self._silent.add(name)
            self._supervisor.order(part, {"do": "stop", "node": name})
        else:
            await self._supervisor.stop([part], seconds=_END_SECONDS)

    def start_node(self, name: str) -> None:
        """Raises ConfigError for an unknown one; one that runs is left alone."""
        part = self._part_of(name)
        if self.plan.is_simulated:
            if name in self._silent:
                self._silent.discard(name)
                self._supervisor.order(part, {"do": "start", "node": name})
        elif not part.is_wanted:
            self._supervisor.start(part)

    def is_stopped(self, name: str) -> bool:
        return name in self._silent if self.plan.is_simulated else not self._part_of(name).is_wanted

    def _part_of(self, name: str) -> Supervised:
        if name not in self.plan.node_names:
            raise ConfigError(f"there is no node {name!r} here: {_range(self.plan.node_names)}")
        return self._nodes[0 if self.plan.is_simulated else self.plan.node_names.index(name)]

    async def _ready(self, part: Supervised, is_ready: Callable[[], bool] = lambda: False) -> None:
        seconds = _READY_SECONDS + _READY_SECONDS_EACH * self.plan.options.nodes
        await self._supervisor.wait_ready(part, seconds=seconds, is_ready=is_ready)

    def _give_identity(self, name: str) -> None:
        """A certificate of its own, with which it may change its node, its lease and its pods, and nothing else."""
        folder = self.plan.folder
        _write(folder.node(name) / "kubeconfig", make_kubeconfig(folder.path, node=name))

    def _give_simulated_identity(self) -> None:
        """One for all: they may do everything, and the audit log tells them from the administrator."""
        text = make_kubeconfig(self.plan.folder.path, user=SIMULATED_NODES, groups=("system:masters",))
        _write(self.plan.simulated_kubeconfig, text)


def _write(path: Path, kubeconfig: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, kubeconfig.encode())


def _range(names: list[str]) -> str:
    match len(names):
        case 0:
            return "there is none at all"
        case 1:
            return f"there is {names[0]}"
        case _:
            return f"there are {names[0]} to {names[-1]}"
