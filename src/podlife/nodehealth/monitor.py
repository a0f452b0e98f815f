"""Monitors the health of all nodes at a fixed interval, and marks unresponsive ones as such.

It decides from caches; before a node is marked, its lease and the node are read from the server: a stuck watch must
not make a live node look dead. Time during which a cache was stale or the server did not respond counts against no
node. The cost of a pass is proportional to the number of nodes; pods are only touched when a node fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import NotFoundError, PodlifeError
from podlife.events import Recorder
from podlife.informer import CacheReader
from podlife.nodehealth.metrics import NodeMetrics
from podlife.nodehealth.no_execute_tainter import NoExecuteTainter
from podlife.nodehealth.node_health import (
    ClockReading,
    Examination,
    NodeAction,
    NodeHealthData,
    decide,
    examine,
)
from podlife.nodehealth.pods_not_ready import PodsNotReadyMarker
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taint_writer import TaintWriter
from podlife.nodehealth.taints import NOT_READY, UNREACHABLE
from podlife.nodehealth.unknown_status import LEASE_NAMESPACE, Look, UnknownStatusWriter
from podlife.nodehealth.views import Lease, MonitoredNode, MonitoredPod, node_reference
from podlife.nodehealth.zones import Disruption, ZoneCount, is_counted, judge, zone_of

log = logging.getLogger(__name__)

# How many nodes are written at once (NL-04).
_AT_ONCE = 8
# After so many nodes others on the loop have their turn.
_BATCH = 200
# A slower response says nothing about heartbeats meanwhile.
_MOST_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class MonitorCaches:
    nodes: CacheReader[MonitoredNode]
    leases: CacheReader[Lease]
    pods: CacheReader[MonitoredPod]
    are_fit: Callable[[], bool]


class NodeMonitor:
    """`writer`, `tainting` and `marking` carry out its decisions; the node lifecycle controller shares them."""

    def __init__(
        self,
        caches: MonitorCaches,
        settings: NodeHealthSettings,
        client: Client,
        clock: Clock,
        recorder: Recorder,
        metrics: NodeMetrics,
    ) -> None:
        self._caches = caches
        self._settings = settings
        self._clock = clock
        self._recorder = recorder
        self._metrics = metrics
        patience = min(_MOST_PATIENCE_SECONDS, settings.monitor_grace_seconds / 4)
        self._silences = UnknownStatusWriter(client, clock, patience_seconds=patience)
        self.writer = TaintWriter(client, clock)
        self.marking = PodsNotReadyMarker(client, clock, recorder)
        self.tainting = NoExecuteTainter(
            caches.nodes, self.writer, metrics, self._may_taint, settings.eviction_rate
        )
        self.healths: dict[str, NodeHealthData] = {}
        # Whose pods could not all be marked.
        self._owing: set[str] = set()
        self.disruption = Disruption()
        # When it was last looked, while the caches were live.
        self._looked_at: float | None = None
        self._was_fit = True
        self._is_looking = False
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def _may_taint(self) -> bool:
        """Not during a look, which may be long: the zones are judged after it, and all nodes might have failed."""
        return self._caches.are_fit() and not self._is_looking

    def is_not_ready(self, name: str) -> bool:
        """Whether the node is known to be not ready; of one that was never looked at nothing is known (NL-47)."""
        health = self.healths.get(name)
        return health is not None and health.ready is not None and health.ready.status != "True"

    async def run(self) -> None:
        """Look until cancelled; the pause is counted from the end of a look (NL-01)."""
        while True:
            if self._caches.are_fit():
                started = asyncio.get_running_loop().time()
                self._is_looking = True
                try:
                    await self.look()
                finally:
                    self._is_looking = False
                self._metrics.pass_seconds.observe(asyncio.get_running_loop().time() - started)
            else:
                self._was_fit = False
            await asyncio.sleep(self._settings.monitor_period_seconds)

    async def look(self) -> None:
        self._silences.took_long = False
        if not self._was_fit:
            self._was_fit = True
            self._leave_out_gap()
        self._looked_at = self._now().loop
        self._forget_removed()
        looks = await self._look_at_all()
        if self._silences.took_long:
            self._forgive("the server took long to answer")
        self._count(looks)
        await self._handle_disruption(looks)

    async def _look_at_all(self) -> list[Look]:
        """Most need nothing but the look; those that need the server share a few lines to it."""
        looks: list[Look] = []
        asking = []
        for number, node in enumerate(self._caches.nodes.list()):
            if number % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            seen = self._examine(node, self._lease_of(node))
            todo = self._decide(node, seen)
            if seen.is_new or seen.must_write or todo.asks_server:
                asking.append(self._see_to(node))
                continue
            self.healths[node.metadata.name] = seen.health
            self._queue(node, todo)
            looks.append(Look(node, seen))
        found = await asyncio.gather(*asking)
        return [*looks, *(each for each in found if each is not None)]

    # One node

    def _examine(self, node: MonitoredNode, lease: Lease | None) -> Examination:
        return examine(node, lease, self.healths.get(node.metadata.name), self._now(), self._settings)

    def _lease_of(self, node: MonitoredNode) -> Lease | None:
        return self._caches.leases.get(LEASE_NAMESPACE, node.metadata.name)

    def _decide(self, node: MonitoredNode, seen: Examination) -> NodeAction:
        return decide(node, seen, owes_marking=node.metadata.name in self._owing)

    async def _see_to(self, node: MonitoredNode) -> Look | None:
        async with self._turns:
            seen = self._examine(node, self._lease_of(node))
            if seen.is_new:
                await self._welcome(node)
                # It is known from now on, even if the rest fails.
                self.healths[node.metadata.name] = seen.health
            look: Look | None = Look(node, seen)
            if seen.must_write:
                look = await self._silences.write(node, self._examine)
            if look is None:
                return None
            self.healths[node.metadata.name] = look.seen.health
            await self._act(look.node, self._decide(look.node, look.seen))
            return look

    async def _welcome(self, node: MonitoredNode) -> None:
        """A new node gets the event RegisteredNode and loses its NoExecute health taints (NL-58)."""
        metadata = node.metadata
        self._tell(
            metadata.name, metadata.uid, "RegisteredNode", f"Registered Node {metadata.name} in Controller"
        )
        self.tainting.add_zone(zone_of(metadata.labels))
        await self._take_taints_off(node)

    # What follows

    def _queue(self, node: MonitoredNode, todo: NodeAction) -> None:
        """The part that asks nothing of the server."""
        if todo.waits:
            self.tainting.add(node, self._now().loop, lacks_taint=todo.lacks_taint)
        elif todo.is_released:
            self.tainting.remove(node.metadata.name)
        if not todo.marks_pods:
            self._owing.discard(node.metadata.name)

    async def _act(self, node: MonitoredNode, todo: NodeAction) -> None:
        name = node.metadata.name
        if todo.swap is not None:
            await self._try(self.writer.swap(node, todo.swap[:1], todo.swap[1:]), f"taints of node {name}")
        if todo.is_released and not await self._take_taints_off(node):
            return
        self._queue(node, todo)
        if todo.tells:
            message = f"Node {name} status is now: NodeNotReady"
            self._recorder.event(node_reference(name, node.metadata.uid), "Normal", "NodeNotReady", message)
        if todo.marks_pods:
            self._owing.add(name)
            if await self.marking.mark_all(self._caches.pods.by_index("node", name)):
                self._owing.discard(name)

    async def _take_taints_off(self, node: MonitoredNode) -> bool:
        """Says whether neither of the two that evict is there any more; one after the other, as upstream."""
        for taint in (UNREACHABLE, NOT_READY):
            if not await self._try(self.writer.remove(node, [taint]), f"taints of node {node.metadata.name}"):
                return False
        self.tainting.remove(node.metadata.name)
        return True

    async def _try(self, writing: Awaitable[object], what: str) -> bool:
        """What fails is done by the next pass."""
        try:
            await writing
        except NotFoundError:
            return True
        except PodlifeError as error:
            log.warning("%s not written, retrying in the next pass: %s", what, error)
            return False
        return True

    # All nodes together

    def _forget_removed(self) -> None:
        for name, health in list(self.healths.items()):
            node = self._caches.nodes.get("", name)
            if node is None or node.metadata.uid != health.uid:
                del self.healths[name]
                self._owing.discard(name)
                self.tainting.remove(name)
                self._tell(name, health.uid, "RemovingNode", f"Removing Node {name} from Controller")

    def _count(self, looks: list[Look]) -> None:
        counts: dict[str, ZoneCount] = defaultdict(ZoneCount)
        for look in looks:
            labels = look.node.metadata.labels
            if is_counted(labels):
                counts[zone_of(labels)].add(is_ready=look.seen.current == "True")
        self._metrics.set_zones(counts)

    async def _handle_disruption(self, looks: list[Look]) -> None:
        zones = {zone: count for zone, count in self._metrics.zones.items() if count.size}
        verdict = judge(self.disruption, zones, self._settings)
        self.disruption = verdict.disruption
        if verdict.stops:
            log.warning("no node is ready in any zone, evictions paused")
            await asyncio.gather(*(self._take_back(look.node) for look in looks))
        if verdict.resumes:
            self._forgive("nodes are ready again")
        self.tainting.set_rates(verdict.rates, self._now().loop)

    async def _take_back(self, node: MonitoredNode) -> None:
        async with self._turns:
            await self._take_taints_off(node)

    def _leave_out_gap(self) -> None:
        """Time during which the caches were stale counts against no node, and no more than that: with a whole grace
        period after each gap, a watch that breaks now and then would keep a dead node alive."""
        now = self._now().loop
        gap = 0.0 if self._looked_at is None else now - self._looked_at
        log.info("caches are live again, ignoring the last %.0f s for all nodes", gap)
        self.healths = {
            name: replace(health, heard_at=min(now, health.heard_at + gap))
            for name, health in self.healths.items()
        }

    def _forgive(self, why: str) -> None:
        """Every node has its whole grace again (NL-74)."""
        log.info("grace periods of all nodes reset: %s", why)
        now = self._now().loop
        self.healths = {name: replace(health, heard_at=now) for name, health in self.healths.items()}

    def _tell(self, name: str, uid: str, reason: str, message: str) -> None:
        self._recorder.event(node_reference(name, uid), "Normal", reason, f"Node {name} event: {message}")

    def _now(self) -> ClockReading:
        return ClockReading(self._clock.now(), asyncio.get_running_loop().time())
