"""Thousands of hollow nodes in one process: one watch for the pods of all, one rate limit, and a scenario.

    nodes = HollowNodes(client, HollowSettings(nodes=1000), SystemClock(), scenario)
    ... await nodes.run() ...
    nodes.tally

Each node is a whole kubelet; they share what would cost each of them a connection. When `run` is cancelled nothing is
removed from the server: that is left to the caller.
"""

from __future__ import annotations

import asyncio
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
from .progress import HollowProgress
from .scenario import NodeOutage, Scenario
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
    # Off, a pod that is deleted goes without telling first how it ended: one request less for each.
    tells_ends: bool = True
    # Where the identity of its kubelets is kept; without it a new process is another set of nodes.
    data: Path | None = None


class HollowNodes:
    """`nodes` by name; `tally` of what became of their pods."""

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
        made = [_node(shared, settings, number) for number in range(settings.nodes)]
        self.nodes: dict[str, HollowNode] = {each.name: each for each in made}
        # A watch of a single node's pods is less than half of the work, for the server and for us.
        only = made[0].name if len(made) == 1 else ""
        selector = f"spec.nodeName={only}" if only else "spec.nodeName!="
        self._pod_feed = SharedWatch(
            client,
            PODS,
            self._take_pod,
            confirm=membership.check,
            wanted=lambda pod: _node_of(pod) in self.nodes,
            field_selector=selector,
        )
        self._node_feed = SharedWatch(
            client,
            NODES,
            self._take_node,
            confirm=membership.check,
            label_selector=f"{HOLLOW_LABEL}={settings.name}",
        )

    @property
    def ready(self) -> int:
        """How many of its nodes are registered and at work."""
        return sum(each.is_ready for each in self.nodes.values())

    async def run(self) -> None:
        """Until it is cancelled. Raises what a server that refuses it says."""
        async with asyncio.TaskGroup() as group:
            if self._recorder is not None:
                group.create_task(self._recorder.run(), name="events")
            group.create_task(self._pod_feed.run(), name="pods of hollow nodes")
            group.create_task(self._node_feed.run(), name="hollow nodes")
            group.create_task(self._complete(), name="first list of pods")
            for node in self.nodes.values():
                node.start(group)
                if next(self._scenario.outages(node.name), None) is not None:
                    group.create_task(self._disturb(node, group), name=f"outages of {node.name}")

    async def _complete(self) -> None:
        await self._pod_feed.synced.wait()
        for node in self.nodes.values():
            node.complete()

    async def _disturb(self, node: HollowNode, group: asyncio.TaskGroup) -> None:
        began = asyncio.get_running_loop().time()
        for outage in self._scenario.outages(node.name):
            await _until(began + outage.begin)
            await self._be_away(node, outage)
            if outage.end is None:
                return
            await _until(began + outage.end)
            self.tally.away -= 1
            node.start(group)

    async def _be_away(self, node: HollowNode, outage: NodeOutage) -> None:
        self.tally.away += 1
        self.tally.outages += 1
        await node.stop(is_machine=outage.is_machine)

    # What the watches bring

    def _take_pod(self, type_: EventType, obj: Object) -> None:
        node = self.nodes[_node_of(obj)]
        if type_ is EventType.DELETED:
            uid = obj["metadata"]["uid"]
            self.tally.remove(uid)
            node.remove_pod(uid)
        else:
            self.tally.put(obj, asyncio.get_running_loop().time())
            node.put_pod(NodePod(obj))

    def _take_node(self, type_: EventType, obj: Object) -> None:
        node = self.nodes.get(obj["metadata"]["name"])
        if node is None:
            return
        if type_ is EventType.DELETED:
            node.remove_node(obj["metadata"]["uid"])
        else:
            node.put_node(obj)


def _node(shared: SharedParts, settings: HollowSettings, number: int) -> HollowNode:
    # Each has an address of its own, from a range that is nobody's.
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


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))
