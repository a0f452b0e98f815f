"""A simulated node of a test cluster: a machine, which keeps running, and the kubelet, which can be stopped.

The kubelet is the real one, with its own identity and connection; only its containers are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.client import NODES, Client, DeleteOptions
from podlife.clock import Clock
from podlife.errors import ConfigError, NotFoundError
from podlife.kubelet.config.api import watch_pods
from podlife.kubelet.config.pod_source import PodSource
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import FixedMachine, MachineFacts, NodeSettings
from podlife.kubelet.runtime import ContainerState
from podlife.kubelet.runtimes.sim import Script, SimRuntime, SimWorld
from podlife.kubelet.settings import KubeletSettings
from podlife.testing.fault_injection import FaultInjection
from podlife.testing.server import Server
from podlife.wire import Peer

_GIB = 1 << 30
_STOP_SECONDS = 30.0
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_OVER_NETWORK = {"httpGet": "path", "tcpSocket": "port", "grpc": "service"}


@dataclass(frozen=True, slots=True)
class ClusterNodeSpec:
    """Properties with which a node registers."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    cores: int = 16
    memory_bytes: int = 64 * _GIB
    max_pods: int = 110


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container that runs on a node's machine, and its pod."""

    namespace: str
    pod: str
    pod_uid: str
    name: str
    id: str


class ClusterNode:
    """`machine` is the simulated world; `agent` is set while the kubelet runs."""

    def __init__(
        self, spec: ClusterNodeSpec, number: int, server: Server, clock: Clock, script: Script
    ) -> None:
        self.spec = spec
        self.agent: Kubelet | None = None
        self._address = f"100.64.{number >> 8}.{number & 255}"
        self.machine = SimWorld(clock, script, ips=(self._address,))
        self._boots = 0
        self._server = server
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._faults: FaultInjection | None = None
        self._group: asyncio.TaskGroup | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def is_registered(self) -> bool:
        return self.agent is not None and self.agent.reporter.registered.is_set()

    @property
    def faults(self) -> FaultInjection:
        """Faults of this node's connection; a new one each time its kubelet is started."""
        if self._faults is None:
            raise ConfigError(f"the kubelet of node {self.name} is not running: start it first")
        return self._faults

    @property
    def containers(self) -> tuple[RunningContainer, ...]:
        """The containers running on the machine, with or without a kubelet."""
        return tuple(
            RunningContainer(
                sandbox.config.namespace,
                sandbox.config.name,
                sandbox.config.pod_uid,
                container.config.name,
                container.id,
            )
            for sandbox in self.machine.sandboxes.values()
            for container in sandbox.containers.values()
            if container.state is ContainerState.RUNNING
        )

    async def start(self) -> None:
        """Start the kubelet, which continues with existing pods. No effect if it is running."""
        if self._task is not None:
            return
        if self._group is None:
            raise ConfigError("the cluster is not running: use it in `async with Cluster(...) as cluster:`")
        peer = Peer(f"system:node:{self.name}", ("system:nodes",))
        self._client, self._faults = self._server.connect(self.name, peer)
        self.agent = Kubelet(
            self._client, SimRuntime(self.machine), self._settings(), self._clock, machine=self._facts()
        )
        self._task = self._group.create_task(self._run(self.agent, self._client), name=f"node {self.name}")

    async def stop(self) -> None:
        """Kill the kubelet, which sends nothing more; its containers keep running."""
        task, client, faults = self._task, self._client, self._faults
        if task is None or client is None or faults is None:
            return
        self._task = self._client = self._faults = self.agent = None
        faults.cut()
        await cancel_and_wait(task, seconds=_STOP_SECONDS)
        await client.close()

    async def power_off(self) -> None:
        """Switch the machine off: kubelet and containers are gone. `start` boots it again."""
        await self.stop()
        self._boots += 1
        self.machine.switch_off()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def remove(self) -> None:
        """Power it off and delete its Node, as for a decommissioned machine."""
        await self.power_off()
        client, _ = self._server.connect("test")
        try:
            node = await client.get(NODES, self.name)
            await client.delete(NODES, self.name, options=DeleteOptions(uid=node["metadata"]["uid"]))
        except NotFoundError:
            pass
        finally:
            await client.close()

    def end_container(self, pod: str, container: str = "", *, exit_code: int = 1) -> None:
        """End a running container of the pod now. Raises ConfigError if there is none."""
        for each in self.containers:
            if each.pod == pod and container in ("", each.name):
                self.machine.end(self.machine.containers[each.id], exit_code)
                return
        runs = ", ".join(f"{each.pod}/{each.name}" for each in self.containers) or "nothing"
        what = f"container {container} of pod {pod}" if container else f"pod {pod}"
        raise ConfigError(f"{what} is not running on {self.name}; running: {runs}")

    def join(self, group: asyncio.TaskGroup) -> None:
        """Allow it to be started, in this task group."""
        self._group = group

    async def _run(self, agent: Kubelet, client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run(), name="agent")
            pods = _OfflinePods(agent.api_pods)
            following = watch_pods(client, self.name, pods, agent.membership.check)
            group.create_task(following, name="pods of the API server")

    def _settings(self) -> KubeletSettings:
        spec = self.spec
        node = NodeSettings(
            spec.name,
            addresses=(self._address,),
            labels=spec.labels,
            taints=spec.taints,
            max_pods=spec.max_pods,
        )
        return KubeletSettings(node, follows_pods=False)

    def _facts(self) -> FixedMachine:
        spec = self.spec
        return FixedMachine(
            MachineFacts(
                spec.cores,
                spec.memory_bytes,
                storage_bytes=1024 * _GIB,
                machine_id=spec.name,
                boot_id=f"{spec.name}-{self._boots}",
                kernel_version="sim",
                os_image="podlife sim",
            )
        )


class _OfflinePods(PodSource):
    """A kubelet's source of pods, whose network probes and hooks are handled by the container's script.

    A simulated container has no address, and virtual time does not wait for sockets. HTTP, TCP and gRPC probes and
    hooks become commands with the same words (`httpGet /healthz`), which `Behaviour.exec` handles; otherwise they
    succeed.
    """

    def __init__(self, source: PodSource) -> None:
        super().__init__(asyncio.Event())
        self._source = source

    @property
    def uids(self) -> frozenset[str]:
        return self._source.uids

    def put(self, pod: Mapping[str, Any]) -> None:
        self._source.put(_offline(pod))

    def remove(self, pod: Mapping[str, Any]) -> None:
        self._source.remove(_offline(pod))

    def remove_uid(self, uid: str) -> None:
        self._source.remove_uid(uid)

    def complete(self) -> None:
        self._source.complete()


def _offline(pod: Mapping[str, Any]) -> Object:
    spec = {
        **pod["spec"],
        **{
            kind: [_container(each) for each in pod["spec"][kind]]
            for kind in ("initContainers", "containers")
            if pod["spec"].get(kind)
        },
    }
    return {**pod, "spec": spec}


def _container(container: Object) -> Object:
    probes = {name: _by_command(container[name]) for name in _PROBES if container.get(name)}
    lifecycle = container.get("lifecycle")
    if lifecycle:
        hooks = {name: _by_command(lifecycle[name]) for name in _HOOKS if lifecycle.get(name)}
        return {**container, **probes, "lifecycle": {**lifecycle, **hooks}}
    return {**container, **probes}


def _by_command(handler: Mapping[str, Any]) -> Object:
    for kind, word in _OVER_NETWORK.items():
        if (action := handler.get(kind)) is not None:
            rest = {key: value for key, value in handler.items() if key != kind}
            return {**rest, "exec": {"command": [kind, str(action.get(word) or "")]}}
    return dict(handler)
