"""One hollow node: a simulated machine and its kubelet, which can be stopped for a while.

The kubelet is the real one (`core`, `node_status`), with a simulated runtime and fakes for expensive parts.
`HollowNodes` watches pods and Node objects for all nodes and passes them in. A status is patched against the watched
pod, which saves a GET per update.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.client import PODS, Client, Limiter, PatchType
from podlife.client.options import METADATA_ONLY
from podlife.client.views import decode
from podlife.clock import Clock
from podlife.errors import NotFoundError
from podlife.kubelet.core import KubeletCore
from podlife.kubelet.interfaces import NoVolumes
from podlife.kubelet.kuberuntime import crash_loop_backoff
from podlife.kubelet.node_status import (
    ClusterMembership,
    FixedMachine,
    KubeletIdentity,
    MachineFacts,
    NodeReporter,
    NodeSettings,
)
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld
from podlife.kubelet.status import ApiStatusClient, StatusManager

from .fake_parts import HollowHooks, HollowProbes, NoMirrors, NoObjects
from .scenario import Scenario
from .script import pulling_of, script_of

log = logging.getLogger(__name__)

_PATCH_HEADERS = {"Content-Type": PatchType.STRATEGIC.value, "Accept": METADATA_ONLY}

_STOP_SECONDS = 5.0
# Simulated pods start and end within this time, even thousands at once. One status update then replaces one per step,
# which a busy process could not keep up with.
_SETTLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class SharedParts:
    """Shared by all hollow nodes. `heartbeats` limits the rate of node status and lease updates."""

    client: Client
    clock: Clock
    heartbeats: Limiter
    events: EventRecorder
    scenario: Scenario
    membership: ClusterMembership
    identity: KubeletIdentity
    # Whether the final status of a deleted pod is written before its removal.
    tells_ends: bool = True


class _WatchedPods(ApiStatusClient):
    """Reads pods from the watch instead of the server."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._by_name: dict[tuple[str, str], NodePod] = {}

    def put(self, pod: NodePod) -> None:
        self._by_name[pod.key] = pod

    def remove(self, pod: NodePod) -> None:
        if (known := self._by_name.get(pod.key)) is not None and known.uid == pod.uid:
            del self._by_name[pod.key]

    async def get(self, namespace: str, name: str) -> Object:
        pod = self._by_name.get((namespace, name))
        if pod is None:
            raise NotFoundError(f'pods "{name}" not found')
        return pod

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        """The patched status is known, so the server returns the metadata only."""
        path = PODS.path(namespace, name, "status")
        reply = await self._client.request("PATCH", path, body=patch, headers=_PATCH_HEADERS)
        updated: Object = decode(reply.body, None, f"PATCH {path}")
        known: Object = self._by_name.get((namespace, name)) or {}
        status = {**(known.get("status") or {}), **patch["status"]}
        return {**known, "metadata": updated["metadata"], "status": status}


class _HollowKubelet:
    """One run of a node's kubelet, from start to stop."""

    def __init__(
        self, shared: SharedParts, world: SimWorld, settings: NodeSettings, facts: MachineFacts
    ) -> None:
        runtime = SimRuntime(world)
        pods = PodManager(self._could_run)
        self.pods = _WatchedPods(shared.client)
        self.reporter = NodeReporter(
            shared.client,
            settings,
            shared.clock,
            machine=FixedMachine(facts),
            runtime=runtime,
            recorder=shared.events,
            limiter=shared.heartbeats,
            membership=shared.membership,
            identity=shared.identity,
        )
        status = StatusManager(
            self.pods,
            pods,
            shared.clock,
            settle_seconds=_SETTLE_SECONDS,
            tells_ends=shared.tells_ends,
        )
        self.core = KubeletCore(
            runtime,
            pods,
            status,
            shared.events,
            shared.clock,
            volumes=NoVolumes(),
            objects=NoObjects(),
            hooks=HollowHooks(),
            prober=HollowProbes(),
            mirrors=NoMirrors(),
            backoff=crash_loop_backoff(),
            node=self.reporter.node,
            host_ips=settings.addresses,
            logs=None,
        )
        self.core.sync_loop.static_pods.complete()

    def _could_run(self, uid: str) -> bool:
        return self.core.workers.could_have_running_containers(uid)

    async def run(self) -> None:
        await self.reporter.claim()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reporter.run(), name="node")
            group.create_task(self.core.run(), name="pods")

    def put(self, pod: NodePod) -> None:
        self.pods.put(pod)
        self.core.sync_loop.api_pods.put(pod)

    def remove(self, pod: NodePod) -> None:
        self.pods.remove(pod)
        self.core.sync_loop.api_pods.remove(pod)


class HollowNode:
    """Objects that arrive while the kubelet is stopped are passed to the next one."""

    def __init__(self, shared: SharedParts, settings: NodeSettings, facts: MachineFacts) -> None:
        self.settings = settings
        self.node: Object | None = None
        self._shared = shared
        self._facts = facts
        self._boots = 0
        self._pods: dict[str, NodePod] = {}
        self._is_complete = False
        self._world = SimWorld(
            shared.clock,
            script_of(shared.scenario),
            pulling=pulling_of(shared.scenario, settings.name),
            ips=settings.addresses,
        )
        self._kubelet: _HollowKubelet | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_ready(self) -> bool:
        """Registered, with a running kubelet."""
        return self._kubelet is not None and self._kubelet.reporter.registered.is_set()

    @property
    def uid(self) -> str:
        """The UID of its Node object; "" while it has none."""
        if self._kubelet is not None and self._kubelet.reporter.uid:
            return self._kubelet.reporter.uid
        return "" if self.node is None else str(self.node["metadata"]["uid"])

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start a kubelet, which takes over the existing pods."""
        facts = replace(self._facts, boot_id=f"{self.name}-{self._boots}")
        self._kubelet = _HollowKubelet(self._shared, self._world, self.settings, facts)
        if self.node is not None:
            self._kubelet.reporter.put(self.node)
        for pod in self._pods.values():
            self._kubelet.put(pod)
        if self._is_complete:
            self._kubelet.core.sync_loop.api_pods.complete()
        self._task = group.create_task(self._kubelet.run(), name=f"kubelet of {self.name}")

    async def stop(self, *, is_machine: bool = False) -> None:
        """Stop its kubelet; with `is_machine` also power off the machine, which ends all containers."""
        task, self._task, self._kubelet = self._task, None, None
        if task is not None:
            await cancel_and_wait(task, seconds=_STOP_SECONDS)
        if is_machine:
            self._boots += 1
            self._world.switch_off()

    # From the shared watches

    def put_pod(self, pod: NodePod) -> None:
        self._pods[pod.uid] = pod
        if self._kubelet is not None:
            self._kubelet.put(pod)

    def remove_pod(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None and self._kubelet is not None:
            self._kubelet.remove(pod)

    def complete(self) -> None:
        """All pods of the first list were put."""
        self._is_complete = True
        if self._kubelet is not None:
            self._kubelet.core.sync_loop.api_pods.complete()

    def put_node(self, node: Object) -> None:
        self.node = node
        if self._kubelet is not None:
            self._kubelet.reporter.put(node)

    def remove_node(self, uid: str) -> None:
        if self.node is not None and self.node["metadata"]["uid"] == uid:
            self.node = None
        if self._kubelet is not None:
            self._kubelet.reporter.remove(uid)
