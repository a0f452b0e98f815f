"""Thousands of hollow nodes in one process: one watch for the pods of all, one rate limit, and a scenario.

    nodes = HollowNodes(client, HollowSettings(nodes=1000), SystemClock(), scenario)
    ... await nodes.run() ...
    nodes.tally

Each node is a complete kubelet; all share one client and its connections. When `run` is cancelled, the objects on the
server remain: the caller deletes them.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podlife.api.codec import Object
from podlife.client import NODES, PODS, Client, EventType, Limiter
from podlife.clock import Clock
from podlife.events import Recorder
from podlife.kubelet.node_status import (
    ClusterMembership,
    KubeletIdentity,
    MachineFacts,
    NodeSettings,
    Thresholds,
)
from podlife.kubelet.pod import NodePod

from .fake_parts import NoEvents
from .hollow_node import HollowNode, SharedParts
from .scenario import Scenario
from .shared_watch import SharedWatch

HOLLOW_LABEL = "sim.podlife.dev/fleet"
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class HollowSettings:
    """Nodes are named after `name`: sim-0, sim-1 …"""

    nodes: int
    name: str = "sim"
    max_pods: int = 110
    cores: int = 64
    memory_bytes: int = 256 * _GIB
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    tells_events: bool = False
    # If False, deleted pods skip the final status update, which saves one request each.
    tells_ends: bool = True
    # Holds the identity of the kubelets; without it a restarted process counts as other nodes.
    data: Path | None = None


def percentile(values: array[float], part: float) -> float:
    """The value that a share of `part` does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


class HollowProgress:
    """Counts pods by phase and measures how long each took to run.

    Times are the event loop's. The time to Running is measured once per pod, from its creation request if known,
    otherwise from its first event.
    """

    def __init__(self) -> None:
        self.phases: Counter[str] = Counter()
        self.start_seconds: array[float] = array("d")
        self.restarts = 0
        self.seen = 0
        self.gone = 0
        self.away = 0
        self.outages = 0
        self._requested: dict[tuple[str, str], float] = {}
        # The phase of each existing pod and its container restarts.
        self._pods: dict[str, tuple[str, int]] = {}
        # Start of the measurement for pods that are not running yet.
        self._since: dict[str, float] = {}

    @property
    def there(self) -> int:
        return len(self._pods)

    def ask(self, namespace: str, name: str, now: float) -> None:
        """Record that a pod of this name is about to be created."""
        self._requested[namespace, name] = now

    def put(self, pod: Mapping[str, Any], now: float) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        uid, phase = metadata["uid"], status.get("phase") or "Pending"
        restarts = sum(each.get("restartCount") or 0 for each in status.get("containerStatuses") or ())
        before = self._pods.get(uid)
        if before is None:
            self.seen += 1
            requested = self._requested.pop((metadata["namespace"], metadata["name"]), None)
            if requested is not None or phase != "Running":
                self._since[uid] = now if requested is None else requested
        else:
            self._uncount(before[0])
            self.restarts += max(restarts - before[1], 0)
        self.phases[phase] += 1
        self._pods[uid] = (phase, restarts)
        if phase == "Running" and (since := self._since.pop(uid, None)) is not None:
            self.start_seconds.append(now - since)

    def remove(self, uid: str) -> None:
        before = self._pods.pop(uid, None)
        if before is not None:
            self.gone += 1
            self._uncount(before[0])
            self._since.pop(uid, None)

    def _uncount(self, phase: str) -> None:
        self.phases[phase] -= 1
        if not self.phases[phase]:
            del self.phases[phase]


class HollowNodes:
    """`nodes` by name; `tally` counts their pods."""

    def __init__(
        self, client: Client, settings: HollowSettings, clock: Clock, scenario: Scenario | None = None
    ) -> None:
        self.tally = HollowProgress()
        self._settings = settings
        self._recorder = Recorder(client, "kubelet", clock=clock) if settings.tells_events else None
        self._scenario = scenario or Scenario()
        events = self._recorder or NoEvents()
        membership = ClusterMembership(client)
        shared = SharedParts(
            client,
            clock,
            Limiter(),
            events,
            self._scenario,
            membership,
            KubeletIdentity(settings.data),
            tells_ends=settings.tells_ends,
        )
        nodes = [_node(shared, settings, number) for number in range(settings.nodes)]
        self.nodes: dict[str, HollowNode] = {each.name: each for each in nodes}
        # A watch of a single node's pods is less than half the work for server and client.
        only = nodes[0].name if len(nodes) == 1 else ""
        selector = f"spec.nodeName={only}" if only else "spec.nodeName!="
        self._pod_watch = SharedWatch(
            client,
            PODS,
            self._on_pod,
            confirm=membership.check,
            wanted=lambda pod: _node_of(pod) in self.nodes,
            field_selector=selector,
        )
        self._node_watch = SharedWatch(
            client,
            NODES,
            self._on_node,
            confirm=membership.check,
            label_selector=f"{HOLLOW_LABEL}={settings.name}",
        )

    @property
    def ready(self) -> int:
        return sum(each.is_ready for each in self.nodes.values())

    async def run(self) -> None:
        """Run until cancelled. Raises the error if the server refuses the watch."""
        async with asyncio.TaskGroup() as group:
            if self._recorder is not None:
                group.create_task(self._recorder.run(), name="events")
            group.create_task(self._pod_watch.run(), name="pods of hollow nodes")
            group.create_task(self._node_watch.run(), name="hollow nodes")
            group.create_task(self._complete(), name="first list of pods")
            for node in self.nodes.values():
                node.start(group)
                if next(self._scenario.outages(node.name), None) is not None:
                    group.create_task(self._run_outages(node, group), name=f"outages of {node.name}")

    async def _complete(self) -> None:
        await self._pod_watch.synced.wait()
        for node in self.nodes.values():
            node.complete()

    async def _run_outages(self, node: HollowNode, group: asyncio.TaskGroup) -> None:
        start = asyncio.get_running_loop().time()
        for outage in self._scenario.outages(node.name):
            await _until(start + outage.begin)
            self.tally.away += 1
            self.tally.outages += 1
            await node.stop(is_machine=outage.is_machine)
            if outage.end is None:
                return
            await _until(start + outage.end)
            self.tally.away -= 1
            node.start(group)

    def _on_pod(self, type_: EventType, obj: Object) -> None:
        node = self.nodes[_node_of(obj)]
        if type_ is EventType.DELETED:
            uid = obj["metadata"]["uid"]
            self.tally.remove(uid)
            node.remove_pod(uid)
        else:
            self.tally.put(obj, asyncio.get_running_loop().time())
            node.put_pod(NodePod(obj))

    def _on_node(self, type_: EventType, obj: Object) -> None:
        node = self.nodes.get(obj["metadata"]["name"])
        if node is None:
            return
        if type_ is EventType.DELETED:
            node.remove_node(obj["metadata"]["uid"])
        else:
            node.put_node(obj)


def _node(shared: SharedParts, settings: HollowSettings, number: int) -> HollowNode:
    # A unique address from the shared address space of RFC 6598, which is not routed.
    address = f"100.{64 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"
    facts = MachineFacts(
        settings.cores,
        settings.memory_bytes,
        storage_bytes=1024 * _GIB,
        machine_id=f"{settings.name}-{number}",
        kernel_version="sim",
        os_image="podlife sim",
    )
    node = NodeSettings(
        f"{settings.name}-{number}",
        addresses=(address,),
        labels={**settings.labels, HOLLOW_LABEL: settings.name},
        taints=settings.taints,
        max_pods=settings.max_pods,
        thresholds=Thresholds(None, None, None, None),
        watches=False,
        register_again=True,
    )
    return HollowNode(shared, node, facts)


def _node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


async def _until(when: float) -> None:
    await asyncio.sleep(max(0.0, when - asyncio.get_running_loop().time()))
