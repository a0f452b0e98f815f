"""Node lifecycle controller: the monitor, NoExecute taints, condition taints, and pods that arrive late.

    plane.add(NodeLifecycleController(plane, settings=NodeHealthSettings()))

Connects the parts to one set of caches and runs them. Nothing is decided while a cache is unsynced or stale. It does
not delete pods: the taint eviction controller does, according to the taints.
"""

from __future__ import annotations

import asyncio

from podlife.client import LEASES, NODES, PODS
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import NotFoundError
from podlife.informer.indexes import Key
from podlife.nodehealth.metrics import NodeMetrics
from podlife.nodehealth.monitor import MonitorCaches, NodeMonitor
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taints import condition_taints, label_changes
from podlife.nodehealth.unknown_status import LEASE_NAMESPACE
from podlife.nodehealth.views import POD_INDEXERS, Lease, MonitoredNode, MonitoredPod
from podlife.workqueue import RateLimitedQueue

# The component name of upstream's events.
_COMPONENT = "node-controller"
# NL-04: workers for NoSchedule tainting, and for late pods
_NODE_WORKERS, _POD_WORKERS = 8, 4
# Request timeout: short compared with the grace periods, so that a request that hangs does not delay the next pass.
_REQUEST_SECONDS = 10.0
_STALE_RETRY_SECONDS = 1.0


class NodeLifecycleController:
    name = "node-lifecycle-controller"

    def __init__(self, plane: ControlPlane, *, settings: NodeHealthSettings | None = None) -> None:
        self.settings = settings or NodeHealthSettings()
        self.metrics = NodeMetrics()
        self._nodes = plane.informer(NODES, view=MonitoredNode)
        self._pods = plane.informer(PODS, view=MonitoredPod, indexers=POD_INDEXERS)
        self._leases = plane.informer(LEASES, view=Lease, namespace=LEASE_NAMESPACE)
        client = plane.client.with_timeout(_REQUEST_SECONDS)
        recorder = plane.recorder(_COMPONENT)
        caches = MonitorCaches(self._nodes.cache, self._leases.cache, self._pods.cache, self._are_caches_live)
        self.monitor = NodeMonitor(caches, self.settings, client, plane.clock, recorder, self.metrics)
        self.tainting = self.monitor.tainting
        self.queue: RateLimitedQueue[str] = RateLimitedQueue("node_lifecycle_controller")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=_NODE_WORKERS)
        self.pod_queue: RateLimitedQueue[Key] = RateLimitedQueue("node_lifecycle_controller_pods")
        self.pod_controller = Controller(
            f"{self.name} pods", self.pod_queue, self.reconcile_pod, workers=_POD_WORKERS
        )
        self._nodes.add_handler(self)
        self._pods.add_handler(_PodEvents(self.pod_queue, self.monitor))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name=f"{self.name} taints")
            group.create_task(self.pod_controller.run(), name=f"{self.name} pods")
            group.create_task(self.tainting.run(), name=f"{self.name} evictions")
            group.create_task(self.monitor.run(), name=f"{self.name} monitor")

    # The node informer's handler: heartbeats affect neither taints nor labels.

    def on_add(self, node: MonitoredNode) -> None:
        self.queue.add(node.metadata.name)

    def on_update(self, old: MonitoredNode, new: MonitoredNode) -> None:
        if _followed(old) != _followed(new):
            self.queue.add(new.metadata.name)

    def on_delete(self, node: MonitoredNode) -> None:
        self.queue.forget(node.metadata.name)

    def _are_caches_live(self) -> bool:
        followed = (self._nodes, self._pods, self._leases)
        return all(informer.has_synced and informer.is_live for informer in followed)

    async def reconcile(self, name: str) -> Again | None:
        """Write NoSchedule taints and the older labels of a node. Failures are retried (upstream gives up, NL-62)."""
        node = self._nodes.cache.get("", name)
        if node is None:
            return None
        if not self._nodes.is_live:
            return Again(_STALE_RETRY_SECONDS)
        added, removed = condition_taints(node)
        try:
            await self.monitor.writer.swap(node, added, removed)
            await self.monitor.writer.set_labels(node, label_changes(node.metadata.labels))
        except NotFoundError:
            return None
        return None

    async def reconcile_pod(self, key: Key) -> Again | None:
        """Mark a pod that was bound to a node that is not ready (NL-47, NL-48)."""
        if not (self._nodes.is_live and self._pods.is_live):
            return Again(_STALE_RETRY_SECONDS)
        pod = self._pods.cache.get(*key)
        if pod is not None and self.monitor.is_not_ready(pod.spec.node_name):
            await self.monitor.marking.mark(pod)
        return None


def _followed(node: MonitoredNode) -> tuple[object, ...]:
    conditions = tuple((each.type, each.status) for each in node.status.conditions)
    return conditions, node.spec.taints, node.spec.unschedulable, label_changes(node.metadata.labels)


class _PodEvents:
    """Enqueues pods that were bound to a node that is not ready."""

    def __init__(self, queue: RateLimitedQueue[Key], monitor: NodeMonitor) -> None:
        self._queue = queue
        self._monitor = monitor

    def on_add(self, pod: MonitoredPod) -> None:
        if pod.spec.node_name and self._monitor.is_not_ready(pod.spec.node_name):
            self._queue.add((pod.metadata.namespace, pod.metadata.name))

    def on_update(self, old: MonitoredPod, new: MonitoredPod) -> None:
        if old.spec.node_name != new.spec.node_name:
            self.on_add(new)

    def on_delete(self, pod: MonitoredPod) -> None:
        self._queue.forget((pod.metadata.namespace, pod.metadata.name))
