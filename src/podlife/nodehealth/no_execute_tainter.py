"""Adds NoExecute taints to nodes that are down, at a limited rate per zone.

The rate limits nodes; pods of a tainted node leave according to their tolerations. Each node is read again before it
is tainted: one that is ready by then, or gone, is skipped (NL-51).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from podlife.errors import NotFoundError, PodlifeError
from podlife.informer import CacheReader
from podlife.nodehealth.metrics import NodeMetrics
from podlife.nodehealth.rate_limited_timed_queue import RateLimitedTimedQueue
from podlife.nodehealth.taint_writer import TaintWriter
from podlife.nodehealth.taints import opposite_of
from podlife.nodehealth.views import MonitoredNode
from podlife.nodehealth.zones import zone_of

log = logging.getLogger(__name__)

# Interval at which non-empty queues are processed (NL-02).
_PASS_SECONDS = 0.1
# Delay before a node without a Ready condition is examined again.
_RETRY_SECONDS = 0.05


class NoExecuteTainter:
    """`may_taint`: whether caches and rates are current."""

    def __init__(
        self,
        nodes: CacheReader[MonitoredNode],
        writer: TaintWriter,
        metrics: NodeMetrics,
        may_taint: Callable[[], bool],
        rate: float,
    ) -> None:
        self._nodes = nodes
        self._writer = writer
        self._metrics = metrics
        self._may_taint = may_taint
        self._rate = rate
        self._queues: dict[str, RateLimitedTimedQueue] = {}
        self._changed = asyncio.Event()

    @property
    def queues(self) -> Mapping[str, RateLimitedTimedQueue]:
        return self._queues

    def add_zone(self, zone: str) -> None:
        if zone not in self._queues:
            self._queues[zone] = RateLimitedTimedQueue(self._rate)
            # Exported from the start (NL-57).
            self._metrics.evictions[zone] += 0

    def add(self, node: MonitoredNode, now: float, *, lacks_taint: bool) -> None:
        """A queued node keeps its place (unlike upstream, NL-55); one still without the taint is queued again."""
        zone, name = zone_of(node.metadata.labels), node.metadata.name
        self.add_zone(zone)
        queue = self._queues[zone]
        if lacks_taint and not queue.is_waiting(name):
            queue.remove(name)
        if queue.add(name, now):
            self._changed.set()

    def remove(self, name: str) -> None:
        """From all zones: its labels may have changed since it was queued."""
        for queue in self._queues.values():
            queue.remove(name)

    def set_rates(self, rates: Mapping[str, float], now: float) -> None:
        for zone, rate in rates.items():
            self.add_zone(zone)
            self._queues[zone].set_rate(rate, now)
        self._changed.set()

    async def run(self) -> None:
        """Run until cancelled. Idle while the queues are empty or their rate is zero."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while any(queue and queue.rate for queue in self._queues.values()):
                await asyncio.sleep(_PASS_SECONDS)
                await self._pass()

    async def _pass(self) -> None:
        loop = asyncio.get_running_loop()
        for zone, queue in list(self._queues.items()):
            while self._may_taint() and (name := queue.take(loop.time())) is not None:
                wait = await self._taint(zone, name)
                if wait is not None:
                    # Slightly later than possible, so that it follows the nodes that are due now.
                    queue.retry(name, loop.time() + wait)

    async def _taint(self, zone: str, name: str) -> float | None:
        """None if nothing is left to do, else the delay before the next attempt."""
        node = self._nodes.get("", name)
        if node is None:
            return None
        if node.ready is None:
            return _RETRY_SECONDS
        pair = opposite_of(node.ready.status)
        if pair is None:
            return None
        try:
            await self._writer.swap(node, pair[:1], pair[1:])
        except NotFoundError:
            return None
        except PodlifeError as error:
            log.warning("tainting node %s failed, retrying: %s", name, error)
            return _RETRY_SECONDS
        self._metrics.evictions[zone] += 1
        log.info("tainted node %s with %s:%s", name, *pair[0])
        return None
