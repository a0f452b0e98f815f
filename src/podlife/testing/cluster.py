"""A whole cluster in the test's process: API server, controllers and simulated nodes on one event loop.

    async with Cluster(nodes=3) as cluster:
        await cluster.client.create(DEPLOYMENTS, deployment, "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        await cluster.advance(minutes=5, seconds=40)

Under virtual time there is no socket, no sleep and no randomness: the same seed gives the same run, to the last UID.
With `socket=True` the cluster runs in real time and any client can connect (`cluster.kubeconfig`). An error that ends
a controller or a kubelet is raised where the cluster is used.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from podlife.aio import cancel_and_wait
from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.namespace import NamespaceController
from podlife.client import NODES, PODS, Client, Ref
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour
from podlife.testing.controllers import DEFAULT, Controllers, Make, chosen
from podlife.testing.definitions import Source, establish
from podlife.testing.fault_injection import FaultInjection
from podlife.testing.node import ClusterNode, ClusterNodeSpec
from podlife.testing.request_log import RequestLog
from podlife.testing.server import Server
from podlife.testing.timeline import Timeline
from podlife.testing.virtual_loop import LoopClock, VirtualTimeLoop

# Time without changes after which a cluster is settled, and the maximum wait for that.
_QUIET_SECONDS = 5.0
_PATIENCE_SECONDS = 600.0
# Poll interval of conditions, and how much of the recent activity is reported.
_POLL_SECONDS = 0.1
_MOST_SHOWN = 10
# Maximum wait for nodes and caches.
_START_SECONDS = 60.0
_FIRST_NODE = 1


class NotSettledError(AssertionError):
    """A wait expired; the message has the recent activity."""


@dataclass(slots=True)
class _Inside:
    server: Server
    clock: Clock
    controllers: Controllers
    group: asyncio.TaskGroup
    client: Client
    nodes: dict[str, ClusterNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The behaviour of containers that match the patterns."""

    behaviour: Behaviour
    pod: str
    namespace: str
    container: str
    image: str

    def fits(self, sandbox: SandboxConfig, container: ContainerConfig) -> bool:
        return (
            fnmatchcase(sandbox.name, self.pod)
            and fnmatchcase(sandbox.namespace, self.namespace)
            and fnmatchcase(container.name, self.container)
            # Defaulting adds the tag `latest`, which the rule may omit.
            and (fnmatchcase(container.image, self.image) or container.image == f"{self.image}:latest")
        )


class Cluster:
    """Constructing one starts nothing. `nodes` is their number (n1, n2 …), names, or specs; `controllers` are names, or
    factories by name (see `podlife.testing.controllers`). `crds` are folders and files with CustomResourceDefinitions,
    classes (`podlife.api.crd`) or manifests: their resources are served when the block begins."""

    def __init__(
        self,
        nodes: int | Iterable[str | ClusterNodeSpec] = 1,
        controllers: Mapping[str, Make] | Iterable[str] = DEFAULT,
        *,
        crds: Source | Iterable[Source] = (),
        seed: int = 0,
        socket: bool = False,
        toleration_seconds: int = 300,
    ) -> None:
        self._specs = _specs(nodes)
        self._makes = chosen(controllers)
        self._crds = crds
        self._seed = seed
        self._has_socket = socket
        self._toleration_seconds = toleration_seconds
        self._rules: list[_Rule] = []
        self._made: _Inside | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        is_virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
        if not self._has_socket and not is_virtual:
            raise ConfigError(
                "this event loop does not have virtual time: use the fixture podlife_cluster or the decorator "
                "@virtual_time, or Cluster(socket=True), which runs in real time"
            )
        if self._has_socket and is_virtual:
            raise ConfigError(
                "sockets do not work under virtual time: use Cluster(socket=True) on an ordinary event loop"
            )
        if self._made is not None:
            raise ConfigError("this cluster is already running: create another one")
        await self._stack.enter_async_context(self._running())
        return self

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._stack.__aexit__(*failure)

    # Contents

    @property
    def client(self) -> Client:
        """An administrator's client, for the test itself."""
        return self._inside.client

    @property
    def clock(self) -> Clock:
        return self._inside.clock

    @property
    def time(self) -> float:
        """The event loop's time, in seconds."""
        return asyncio.get_running_loop().time()

    @property
    def api(self) -> FaultInjection:
        """Faults for all requests, including those of the test: `api.stall()`, `api.break_watches()`."""
        return self._inside.server.faults

    @property
    def audit(self) -> RequestLog:
        return self._inside.server.audit

    @property
    def controllers(self) -> Controllers:
        return self._inside.controllers

    @property
    def nodes(self) -> Mapping[str, ClusterNode]:
        return self._inside.nodes

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for any client on this machine. Raises ConfigError without a socket."""
        if self._inside.server.kubeconfig is None:
            raise ConfigError("this cluster has no socket: create it with Cluster(socket=True)")
        return self._inside.server.kubeconfig

    def node(self, name: str) -> ClusterNode:
        if name not in self._inside.nodes:
            names = ", ".join(self._inside.nodes) or "none"
            raise ConfigError(f"unknown node {name!r}; this cluster has {names}")
        return self._inside.nodes[name]

    async def add_node(self, spec: str | ClusterNodeSpec) -> ClusterNode:
        """Add a node and wait until it is registered and ready."""
        spec = ClusterNodeSpec(spec) if isinstance(spec, str) else spec
        if spec.name in self._inside.nodes:
            raise ConfigError(f"node {spec.name!r} already exists: start it, or choose another name")
        node = await self._start_node(spec)
        await self.until(lambda: node.is_registered, within=_START_SECONDS, what=f"node {spec.name}")
        return node

    def behave(
        self,
        behaviour: Behaviour,
        *,
        pod: str = "*",
        namespace: str = "*",
        container: str = "*",
        image: str = "*",
    ) -> None:
        """Set the behaviour of containers created from now on; names may contain `*`. The last matching rule counts."""
        self._rules.append(_Rule(behaviour, pod, namespace, container, image))

    def connect(self, name: str, *, is_beside: bool = False) -> tuple[Client, FaultInjection]:
        """An administrator's client for a component of the test, which must close it, and the faults of its
        connection. With `is_beside` it bypasses the faults of `api`, which all others share."""
        return self._inside.server.connect(name, is_beside=is_beside)

    # Time

    async def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Let this much time pass, and everything happen that is due by then. Raises ConfigError in real time."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            raise ConfigError(
                "a cluster with a socket runs in real time, which cannot be advanced: use `until`"
            )
        step = seconds + 60 * minutes + 3600 * hours
        if step < 0:
            raise ConfigError(f"time can only advance, not by {step:g} s")
        await loop.idle()
        await asyncio.sleep(step)
        await loop.idle()

    async def settled(
        self, *, quiet_seconds: float = _QUIET_SECONDS, within: float = _PATIENCE_SECONDS
    ) -> None:
        """Wait until nothing but heartbeats and events has changed for `quiet_seconds`. Raises NotSettledError if that
        does not happen within the time."""
        began = self.time
        while (left := max(began, self.audit.changed_at) + quiet_seconds - self.time) > 0:
            if self.time - began > within:
                last = "\n".join(str(each) for each in list(self.audit)[-_MOST_SHOWN:])
                raise NotSettledError(f"not settled after {within:g} s; the last changes were:\n{last}")
            await asyncio.sleep(left)
            await _let_happen()

    async def until(
        self, holds: Callable[[], Any], *, within: float = _PATIENCE_SECONDS, what: str = ""
    ) -> float:
        """Wait until a condition, possibly an async function, holds; returns how long it took. Raises
        NotSettledError."""
        began = self.time
        while True:
            await _let_happen()
            answer = holds()
            if await answer if inspect.isawaitable(answer) else answer:
                return self.time - began
            if self.time - began >= within:
                what = what or getattr(holds, "__name__", "the condition")
                raise NotSettledError(f"{what}: not met after {within:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def timeline(self, *refs: Ref) -> AsyncIterator[Timeline]:
        """A timeline of pods and nodes, or of the named resources, while the block runs."""
        client, _ = self._inside.server.connect("timeline", is_beside=True)
        seen = Timeline(client, refs or (PODS, NODES))
        task = self._inside.group.create_task(seen.run(), name="timeline")
        try:
            await seen.synced.wait()
            yield seen
        finally:
            await cancel_and_wait(task)
            await client.close()

    # Running

    @property
    def _inside(self) -> _Inside:
        if self._made is None:
            raise ConfigError("the cluster is not running: use it in `async with Cluster(...) as cluster:`")
        return self._made

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        clock: Clock = SystemClock() if self._has_socket else LoopClock()
        chance = random.Random(self._seed)  # noqa: S311 - makes names reproducible
        server = Server(clock, chance, toleration_seconds=self._toleration_seconds)
        await server.prepare()
        try:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                stack.enter_context(_seeded(self._seed))
                stack.callback(setattr, self, "_made", None)
                if self._has_socket:
                    await server.listen(stack)
                client, _ = server.connect("test")
                controllers = Controllers(server, clock, self._makes)
                self._made = _Inside(server, clock, controllers, group, client)
                registry = server.handler.registry
                tasks = [
                    group.create_task(NamespaceController(registry).run(), name="namespaces"),
                    group.create_task(CustomResourceDefinitionController(registry).run(), name="definitions"),
                ]
                await self._begin()
                yield
                await self._end()
                await cancel_and_wait(*tasks)
        except BaseExceptionGroup as failures:
            raise (failures.exceptions[0] if len(failures.exceptions) == 1 else failures) from None

    async def _begin(self) -> None:
        inside = self._inside
        await establish(inside.client, self._crds, self.until)
        await inside.controllers.begin(inside.group)
        for spec in self._specs:
            await self._start_node(spec)

        def is_at_work() -> bool:
            nodes_are_there = all(node.is_registered for node in inside.nodes.values())
            return nodes_are_there and not inside.controllers.complaint

        await self.until(is_at_work, within=_START_SECONDS, what="nodes and controllers at work")

    async def _end(self) -> None:
        inside = self._inside
        for node in inside.nodes.values():
            await node.stop()
        # Components must be able to shut down gracefully.
        inside.server.faults.resume()
        await inside.controllers.end()
        await inside.client.close()

    async def _start_node(self, spec: ClusterNodeSpec) -> ClusterNode:
        inside = self._inside
        number = len(inside.nodes) + _FIRST_NODE
        node = ClusterNode(spec, number, inside.server, inside.clock, self._behaviour)
        inside.nodes[spec.name] = node
        node.join(inside.group)
        await node.start()
        return node

    def _behaviour(self, sandbox: SandboxConfig, container: ContainerConfig) -> Behaviour:
        fitting = (rule.behaviour for rule in reversed(self._rules) if rule.fits(sandbox, container))
        return next(fitting, Behaviour())


async def _let_happen() -> None:
    """Run everything that can run before time passes; in real time, one round."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


def _specs(nodes: int | Iterable[str | ClusterNodeSpec]) -> list[ClusterNodeSpec]:
    if isinstance(nodes, int):
        return [ClusterNodeSpec(f"n{number}") for number in range(_FIRST_NODE, nodes + _FIRST_NODE)]
    specs = [ClusterNodeSpec(each) if isinstance(each, str) else each for each in nodes]
    names = [each.name for each in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"duplicate node name {twice[0]!r}")
    return specs


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random generator, which spreads load, and restore its state afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
