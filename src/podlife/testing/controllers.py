"""The controllers of a test cluster: each can be stopped, killed, restarted or disconnected.

    Cluster(controllers=DEFAULT)                                        # all that a cluster has
    Cluster(controllers=("replicaset", "scheduler"))                    # only these
    Cluster(controllers={**DEFAULT, "mine": function(reconcile_loop)})  # plus one of your own

A controller that ends on its own ends the cluster with its error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from podlife.aio import cancel_and_wait
from podlife.client import Client
from podlife.clock import Clock
from podlife.controller import ControlPlane, Runnable
from podlife.errors import ConfigError
from podlife.nodehealth import NodeHealthSettings, NodeLifecycleController, TaintEvictionController
from podlife.ownergc import OwnerGarbageCollector
from podlife.podgc import Collector
from podlife.podgc import Settings as PodGcSettings
from podlife.scheduler import Scheduler
from podlife.testing.fault_injection import FaultInjection
from podlife.testing.server import Server
from podlife.wire import Peer
from podlife.workloads import CONTROLLERS as WORKLOADS

Make = Callable[[ControlPlane], Runnable]
"""Creates a controller for its own control plane; usually its class."""

_CONTROLLER_MANAGER = Peer("system:kube-controller-manager")
_SCHEDULER = Peer("system:kube-scheduler")
_STOP_SECONDS = 30.0


class _PodGc:
    """The pod collector as one of several controllers, with its own caches."""

    name = "pod-garbage-collector-controller"

    def __init__(self, plane: ControlPlane, settings: PodGcSettings | None = None) -> None:
        recorder = plane.recorder("podlife-gc")
        self._collector = Collector(plane.client, settings, clock=plane.clock, recorder=recorder)

    @property
    def complaint(self) -> str:
        return "" if self._collector.is_fit else "not synced, or the server is silent"

    async def run(self) -> None:
        await self._collector.run()


class _Function:
    def __init__(self, run: Callable[[Client], Awaitable[None]], client: Client) -> None:
        self.name = getattr(run, "__name__", "function")
        self._run = run
        self._client = client

    async def run(self) -> None:
        await self._run(self._client)


def function(run: Callable[[Client], Awaitable[None]]) -> Make:
    """A plain async function as a controller: it receives a client, and runs until cancelled."""
    return lambda plane: _Function(run, plane.client)


def pod_gc(settings: PodGcSettings) -> Make:
    return lambda plane: _PodGc(plane, settings)


def node_lifecycle(settings: NodeHealthSettings) -> Make:
    return lambda plane: NodeLifecycleController(plane, settings=settings)


DEFAULT: Mapping[str, Make] = MappingProxyType(
    {
        **WORKLOADS,
        "garbage-collector-controller": OwnerGarbageCollector,
        "pod-garbage-collector-controller": _PodGc,
        "node-lifecycle-controller": NodeLifecycleController,
        "taint-eviction-controller": TaintEvictionController,
        "scheduler": Scheduler,
    }
)
"""Everything that works on pods in a cluster: workloads, owners, collectors, node health and a scheduler."""


def chosen(controllers: Mapping[str, Make] | Iterable[str]) -> Mapping[str, Make]:
    """The selected controllers; names may omit `-controller`. Raises ConfigError for an unknown name."""
    if isinstance(controllers, Mapping):
        return controllers
    return {name: DEFAULT[name] for name in (_full_name(each, DEFAULT) for each in controllers)}


def _full_name(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    for each in (name, f"{name}-controller"):
        if each in names:
            return each
    raise ConfigError(f"unknown controller {name!r}; choose from {', '.join(sorted(names)) or 'none'}")


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[None]
    plane: ControlPlane
    client: Client
    faults: FaultInjection


class Controllers:
    """The controllers of a cluster by name. A killed one sends nothing more to the server, like a killed process."""

    def __init__(self, server: Server, clock: Clock, makes: Mapping[str, Make]) -> None:
        self._server = server
        self._clock = clock
        self._makes = dict(makes)
        self._running: dict[str, _Running] = {}
        self._group: asyncio.TaskGroup | None = None

    def __iter__(self) -> Iterator[str]:
        """The names of all controllers, running or not."""
        return iter(self._makes)

    def is_running(self, name: str) -> bool:
        return _full_name(name, self._makes) in self._running

    def faults(self, name: str) -> FaultInjection:
        """Faults of this controller's connection; a new one each time it is started."""
        name = _full_name(name, self._makes)
        if name not in self._running:
            raise ConfigError(f"{name} is not running: start it first")
        return self._running[name].faults

    async def start(self, name: str) -> None:
        """No effect if it is running."""
        name = _full_name(name, self._makes)
        if name in self._running:
            return
        if self._group is None:
            raise ConfigError("the cluster is not running: use it in `async with Cluster(...) as cluster:`")
        peer = _SCHEDULER if name == "scheduler" else _CONTROLLER_MANAGER
        client, faults = self._server.connect(name, peer)
        plane = ControlPlane(client, clock=self._clock)
        plane.add(self._makes[name](plane))
        task = self._group.create_task(plane.run(), name=name)
        self._running[name] = _Running(task, plane, client, faults)

    async def stop(self, name: str) -> None:
        """Stop gracefully: requests in flight are finished."""
        running = self._running.pop(_full_name(name, self._makes), None)
        if running is not None:
            await cancel_and_wait(running.task, seconds=_STOP_SECONDS)
            await running.client.close()

    async def kill(self, name: str) -> None:
        """Stop at once, without finishing requests."""
        running = self._running.get(_full_name(name, self._makes))
        if running is not None:
            running.faults.cut()
            await self.stop(name)

    async def restart(self, name: str) -> None:
        await self.kill(name)
        await self.start(name)

    @property
    def complaint(self) -> str:
        """Why a running controller is not working yet."""
        for name, running in self._running.items():
            if running.plane.complaint:
                return f"{name}: {running.plane.complaint}"
        return ""

    async def begin(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        for name in self._makes:
            await self.start(name)

    async def end(self) -> None:
        for name in reversed(list(self._running)):
            await self.stop(name)
        self._group = None
