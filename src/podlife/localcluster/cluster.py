"""The components of a cluster on one machine: started in order, stopped in reverse; single nodes stopped and started.

Start: the API server, then controllers and nodes, all at once. Stop: the controllers, so that no new pods are created;
the kubelets; the pods, with their grace period; the API server last. Every step has a deadline.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from podlife.daemons.kubeconfigs import make_kubeconfig
from podlife.errors import ConfigError, PodlifeError
from podlife.explain import SIMULATED_NODES
from podlife.localcluster.cluster_state import ClusterState
from podlife.localcluster.plan import ClusterPlan, keep_port
from podlife.localcluster.supervisor import Component, ComponentSupervisor
from podlife.pki import write_private

_READY_SECONDS, _READY_SECONDS_EACH = 60.0, 0.2
_END_SECONDS = 15.0
_PAGE_SECONDS = 5.0
# Beyond the grace period, for pods that are then killed.
_MARGIN_SECONDS = 10.0
_POLL_SECONDS = 0.05


class LocalCluster:
    def __init__(self, plan: ClusterPlan, supervisor: ComponentSupervisor) -> None:
        self.plan = plan
        self.url = ""
        self._supervisor = supervisor
        self._apiserver = plan.make_apiserver()
        self._controllers = plan.make_controllers()
        self._nodes = plan.make_nodes()
        self._ui = plan.make_ui()
        # Simulated nodes that were stopped: all of them share one process.
        self._stopped: set[str] = set()

    @property
    def components(self) -> list[Component]:
        ui = () if self._ui is None else (self._ui,)
        return [self._apiserver, self._controllers, *self._nodes, *ui]

    @property
    def page(self) -> str:
        """The address of the page, with its token; "" if it is not served."""
        return "" if self._ui is None else self._ui.answer

    async def start_apiserver(self) -> None:
        """Raises PodlifeError with the reason if it does not start serving."""
        self._supervisor.start(self._apiserver)
        await self._ready(self._apiserver)
        self.url = self._apiserver.answer
        keep_port(self._apiserver, self.url)

    def start_rest(self) -> None:
        self._supervisor.start(self._controllers)
        if not self.plan.is_simulated:
            for name in self.plan.node_names:
                self._write_kubeconfig(name)
        elif self._nodes:
            self._write_simulated_kubeconfig()
        for component in self._nodes:
            self._supervisor.start(component)
        if self._ui is not None:
            self._supervisor.start(self._ui)

    async def wait_until_ready(self, state: ClusterState) -> None:
        """Raises PodlifeError when a component ends, or is not ready in time."""
        await self._ready(self._controllers)
        for name in self.plan.node_names:
            await self._ready(self._component_of(name), partial(state.is_at_work, name))
        self._supervisor.is_up = True
        await self._wait_for_page()

    async def _wait_for_page(self) -> None:
        """The cluster is up with or without it."""
        if self._ui is None:
            return
        try:
            await self._supervisor.wait_ready(self._ui, seconds=_PAGE_SECONDS, is_ready=lambda: False)
        except PodlifeError as error:
            self._supervisor.say(f"the page is not served: {error}")
        else:
            keep_port(self._ui, self._ui.answer)

    async def stop(self, at_once: asyncio.Event, progress: Callable[[int], None]) -> None:
        """`progress` is called with the number of pods that have not terminated yet."""
        self._supervisor.is_up = False
        first = [self._controllers] if self._ui is None else [self._ui, self._controllers]
        await self._supervisor.stop(first, seconds=_END_SECONDS)
        await self._supervisor.stop(self._nodes, seconds=_END_SECONDS)
        await self._stop_pods(at_once, progress)
        await self._supervisor.stop([self._apiserver], seconds=_END_SECONDS)

    async def _stop_pods(self, at_once: asyncio.Event, progress: Callable[[int], None]) -> None:
        shutdowns = self.plan.make_pod_shutdowns()
        for each in shutdowns:
            self._supervisor.start(each)
        event_loop = asyncio.get_running_loop()
        deadline = event_loop.time() + self.plan.settings.stop_seconds + _MARGIN_SECONDS
        is_hurried = False
        while not all(each.ended.is_set() for each in shutdowns) and event_loop.time() < deadline:
            progress(sum(each.left or 0 for each in shutdowns))
            if at_once.is_set() and not is_hurried:
                is_hurried = True
                deadline = min(deadline, event_loop.time() + _MARGIN_SECONDS)
                for each in shutdowns:
                    self._supervisor.signal(each, signal.SIGTERM)
            await asyncio.sleep(_POLL_SECONDS)
        await self._supervisor.stop(shutdowns, seconds=0)

    # One node

    async def stop_node(self, name: str) -> None:
        """Stop its kubelet, without a restart; its pods keep running. Raises ConfigError for an unknown node."""
        component = self._component_of(name)
        if self.plan.is_simulated:
            self._stopped.add(name)
            self._supervisor.send(component, {"do": "stop", "node": name})
        else:
            await self._supervisor.stop([component], seconds=_END_SECONDS)

    def start_node(self, name: str) -> None:
        """Does nothing if the node is running. Raises ConfigError for an unknown node."""
        component = self._component_of(name)
        if self.plan.is_simulated:
            if name in self._stopped:
                self._stopped.discard(name)
                self._supervisor.send(component, {"do": "start", "node": name})
        elif not component.is_wanted:
            self._supervisor.start(component)

    def is_stopped(self, name: str) -> bool:
        return name in self._stopped if self.plan.is_simulated else not self._component_of(name).is_wanted

    def _component_of(self, name: str) -> Component:
        if name not in self.plan.node_names:
            raise ConfigError(f"unknown node {name!r}; this cluster has {_range(self.plan.node_names)}")
        return self._nodes[0 if self.plan.is_simulated else self.plan.node_names.index(name)]

    async def _ready(self, component: Component, is_ready: Callable[[], bool] = lambda: False) -> None:
        seconds = _READY_SECONDS + _READY_SECONDS_EACH * self.plan.settings.nodes
        await self._supervisor.wait_ready(component, seconds=seconds, is_ready=is_ready)

    def _write_kubeconfig(self, name: str) -> None:
        """With its own certificate, which permits changes to its node, its lease and its pods only."""
        state_dir = self.plan.state_dir
        _write(state_dir.node(name) / "kubeconfig", make_kubeconfig(state_dir.path, node=name))

    def _write_simulated_kubeconfig(self) -> None:
        """One certificate for all simulated nodes: it permits everything, under its own name in the audit log."""
        text = make_kubeconfig(self.plan.state_dir.path, user=SIMULATED_NODES, groups=("system:masters",))
        _write(self.plan.simulated_kubeconfig, text)


def _write(path: Path, kubeconfig: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, kubeconfig.encode())


def _range(names: list[str]) -> str:
    match len(names):
        case 0:
            return "no nodes"
        case 1:
            return names[0]
        case _:
            return f"{names[0]} to {names[-1]}"
