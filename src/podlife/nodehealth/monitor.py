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
from podlife.nodehealth.unknown_status import LEASE_NAMESPACE, ExaminedNode, UnknownStatusWriter
from podlife.nodehealth.views import Lease, MonitoredNode, MonitoredPod, node_reference
from podlife.nodehealth.zones import Disruption, ZoneCount, is_counted, judge, zone_of

log = logging.getLogger(__name__)

# Nodes written concurrently (NL-04).
_AT_ONCE = 8
# Nodes examined before yielding to the event loop.
_BATCH = 200
# If the server takes longer to respond, missing heartbeats are not held against nodes.
_MOST_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class MonitorCaches:
    nodes: CacheReader[MonitoredNode]
    leases: CacheReader[Lease]
    pods: CacheReader[MonitoredPod]
    are_live: Callable[[], bool]


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
        self._unknown_status = UnknownStatusWriter(client, clock, patience_seconds=patience)
        self.writer = TaintWriter(client, clock)
        self.marking = PodsNotReadyMarker(client, clock, recorder)
        self.tainting = NoExecuteTainter(
            caches.nodes, self.writer, metrics, self._may_taint, settings.eviction_rate
        )
        self.healths: dict[str, NodeHealthData] = {}
        # TaintOwner pods could not all be marked.
        self._unmarked: set[str] = set()
        self.disruption = Disruption()
        # Start of the last pass with live caches.
        self._last_pass_at: float | None = None
        self._were_live = True
        self._is_in_pass = False
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def _may_taint(self) -> bool:
        """Not during a pass, which may be long: zones are evaluated after it, and all nodes might have failed."""
        return self._caches.are_live() and not self._is_in_pass

    def is_not_ready(self, name: str) -> bool:
        """Whether the node is known to be not ready; false for a node that was never examined (NL-47)."""
        health = self.healths.get(name)
        return health is not None and health.ready is not None and health.ready.status != "True"

    async def run(self) -> None:
        """Run passes until cancelled; the interval starts at the end of a pass (NL-01)."""
        while True:
            if self._caches.are_live():
                started = asyncio.get_running_loop().time()
                self._is_in_pass = True
                try:
                    await self.run_pass()
                finally:
                    self._is_in_pass = False
                self._metrics.pass_seconds.observe(asyncio.get_running_loop().time() - started)
            else:
                self._were_live = False
            await asyncio.sleep(self._settings.monitor_period_seconds)

    async def run_pass(self) -> None:
        self._unknown_status.took_long = False
        if not self._were_live:
            self._were_live = True
            self._skip_gap()
        self._last_pass_at = self._now().loop
        self._forget_removed()
        examined = await self._examine_all()
        if self._unknown_status.took_long:
            self._reset_grace("the server responded slowly")
        self._count(examined)
        await self._handle_disruption(examined)

    async def _examine_all(self) -> list[ExaminedNode]:
        """Most nodes are decided from the cache; those that need requests share a few connections."""
        examined: list[ExaminedNode] = []
        with_requests = []
        for number, node in enumerate(self._caches.nodes.list()):
            if number % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)
            seen = self._examine(node, self._lease_of(node))
            todo = self._decide(node, seen)
            if seen.is_new or seen.must_write or todo.asks_server:
                with_requests.append(self._handle(node))
                continue
            self.healths[node.metadata.name] = seen.health
            self._queue(node, todo)
            examined.append(ExaminedNode(node, seen))
        handled = await asyncio.gather(*with_requests)
        return [*examined, *(each for each in handled if each is not None)]

    # One node

    def _examine(self, node: MonitoredNode, lease: Lease | None) -> Examination:
        return examine(node, lease, self.healths.get(node.metadata.name), self._now(), self._settings)

    def _lease_of(self, node: MonitoredNode) -> Lease | None:
        return self._caches.leases.get(LEASE_NAMESPACE, node.metadata.name)

    def _decide(self, node: MonitoredNode, seen: Examination) -> NodeAction:
        return decide(node, seen, has_unmarked_pods=node.metadata.name in self._unmarked)

    async def _handle(self, node: MonitoredNode) -> ExaminedNode | None:
        async with self._turns:
            seen = self._examine(node, self._lease_of(node))
            if seen.is_new:
                await self._register(node)
                # Registered even if the rest fails.
                self.healths[node.metadata.name] = seen.health
            result: ExaminedNode | None = ExaminedNode(node, seen)
            if seen.must_write:
                result = await self._unknown_status.write(node, self._examine)
            if result is None:
                return None
            self.healths[node.metadata.name] = result.seen.health
            await self._act(result.node, self._decide(result.node, result.seen))
            return result

    async def _register(self, node: MonitoredNode) -> None:
        """A new node gets the event RegisteredNode and loses its NoExecute health taints (NL-58)."""
        metadata = node.metadata
        self._record_event(
            metadata.name, metadata.uid, "RegisteredNode", f"Registered Node {metadata.name} in Controller"
        )
        self.tainting.add_zone(zone_of(metadata.labels))
        await self._remove_taints(node)

    # What follows

    def _queue(self, node: MonitoredNode, todo: NodeAction) -> None:
        """The part without requests to the server."""
        if todo.waits:
            self.tainting.add(node, self._now().loop, lacks_taint=todo.lacks_taint)
        elif todo.is_released:
            self.tainting.remove(node.metadata.name)
        if not todo.marks_pods:
            self._unmarked.discard(node.metadata.name)

    async def _act(self, node: MonitoredNode, todo: NodeAction) -> None:
        name = node.metadata.name
        if todo.swap is not None:
            await self._try(self.writer.swap(node, todo.swap[:1], todo.swap[1:]), f"taints of node {name}")
        if todo.is_released and not await self._remove_taints(node):
            return
        self._queue(node, todo)
        if todo.records_event:
            message = f"Node {name} status is now: NodeNotReady"
            self._recorder.event(node_reference(name, node.metadata.uid), "Normal", "NodeNotReady", message)
        if todo.marks_pods:
            self._unmarked.add(name)
            if await self.marking.mark_all(self._caches.pods.by_index("node", name)):
                self._unmarked.discard(name)

    async def _remove_taints(self, node: MonitoredNode) -> bool:
        """Return whether both NoExecute taints are removed; one request each, as upstream."""
        for taint in (UNREACHABLE, NOT_READY):
            if not await self._try(self.writer.remove(node, [taint]), f"taints of node {node.metadata.name}"):
                return False
        self.tainting.remove(node.metadata.name)
        return True

    async def _try(self, writing: Awaitable[object], what: str) -> bool:
        """The next pass repeats a failed write."""
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
                self._unmarked.discard(name)
                self.tainting.remove(name)
                self._record_event(name, health.uid, "RemovingNode", f"Removing Node {name} from Controller")

    def _count(self, examined: list[ExaminedNode]) -> None:
        counts: dict[str, ZoneCount] = defaultdict(ZoneCount)
        for result in examined:
            labels = result.node.metadata.labels
            if is_counted(labels):
                counts[zone_of(labels)].add(is_ready=result.seen.current == "True")
        self._metrics.set_zones(counts)

    async def _handle_disruption(self, examined: list[ExaminedNode]) -> None:
        zones = {zone: count for zone, count in self._metrics.zones.items() if count.size}
        verdict = judge(self.disruption, zones, self._settings)
        self.disruption = verdict.disruption
        if verdict.stops:
            log.warning("no node is ready in any zone, evictions paused")
            await asyncio.gather(*(self._remove_taints_in_turn(result.node) for result in examined))
        if verdict.resumes:
            self._reset_grace("nodes are ready again")
        self.tainting.set_rates(verdict.rates, self._now().loop)

    async def _remove_taints_in_turn(self, node: MonitoredNode) -> None:
        async with self._turns:
            await self._remove_taints(node)

    def _skip_gap(self) -> None:
        """Do not count time with stale caches against nodes, and no more than that: with a whole grace period after
        each gap, a watch that breaks repeatedly would keep a dead node alive."""
        now = self._now().loop
        gap = 0.0 if self._last_pass_at is None else now - self._last_pass_at
        log.info("caches are live again, ignoring the last %.0f s for all nodes", gap)
        self.healths = {
            name: replace(health, last_report_at=min(now, health.last_report_at + gap))
            for name, health in self.healths.items()
        }

    def _reset_grace(self, why: str) -> None:
        """Restart the grace period of every node (NL-74)."""
        log.info("grace periods of all nodes reset: %s", why)
        now = self._now().loop
        self.healths = {name: replace(health, last_report_at=now) for name, health in self.healths.items()}

    def _record_event(self, name: str, uid: str, reason: str, message: str) -> None:
        self._recorder.event(node_reference(name, uid), "Normal", reason, f"Node {name} event: {message}")

    def _now(self) -> ClockReading:
        return ClockReading(self._clock.now(), asyncio.get_running_loop().time())
