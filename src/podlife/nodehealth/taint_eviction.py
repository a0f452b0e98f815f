"""Taint eviction controller: deletes pods that do not tolerate the NoExecute taints of their node.

Every event is evaluated when it arrives: new taints of a node evaluate its pods, an event of a pod evaluates that
pod. When an eviction is due the caches must be live, and node and pod are read from the server: the deleted pod has
the expected UID and its node is still tainted. The pod gets a DisruptionTarget condition before it is deleted.
Failures are retried with backoff until the pod is gone or tolerates the taints.
"""

from __future__ import annotations

import asyncio
import math

from podlife.aio import wait_until_set
from podlife.api.codec import Object, format_time
from podlife.api.patch import create_two_way_merge_patch
from podlife.client import NODES, PODS, DeleteOptions, PatchType
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ConflictError, NotFoundError
from podlife.nodehealth.evictions import Eviction, EvictionOutcome, Evictions
from podlife.nodehealth.metrics import EvictionMetrics
from podlife.nodehealth.taints import evicting_taints
from podlife.nodehealth.views import POD_INDEXERS, MonitoredNode, MonitoredPod
from podlife.workqueue import ExponentialLimiter, RateLimitedQueue

_WORKERS = 16
_RETRY_SECONDS, _MOST_RETRY_SECONDS = 0.01, 60.0
# Retry delay while caches catch up, and how long a node read from the server counts as current.
_CATCH_UP_SECONDS = 1.0
_LONGEST_SLEEP_SECONDS = 3600.0
_REASON = "TaintManagerEviction"


class TaintEvictionController:
    name = "taint-eviction-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = _WORKERS) -> None:
        self.metrics = EvictionMetrics()
        self.evictions = Evictions()
        self._client = plane.client
        self._clock = plane.clock
        self._recorder = plane.recorder(self.name)
        self._nodes = plane.informer(NODES, view=MonitoredNode)
        self._pods = plane.informer(PODS, view=MonitoredPod, indexers=POD_INDEXERS)
        limiter = ExponentialLimiter[str](_RETRY_SECONDS, _MOST_RETRY_SECONDS)
        # Keys are UIDs.
        self.queue: RateLimitedQueue[str] = RateLimitedQueue("taint_eviction", limiter=limiter)
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._changed = asyncio.Event()
        # Nodes read from the server: when, and whether their taints matched the cache.
        self._asked: dict[str, tuple[float, bool]] = {}
        self._nodes.add_handler(_NodeEvents(self))
        self._pods.add_handler(self)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name=f"{self.name} deletions")
            group.create_task(self._enqueue_due(), name=f"{self.name} clock")

    def note_node(self, node: MonitoredNode) -> None:
        is_tainted = self.evictions.set_taints(node)
        for pod in self._pods.cache.by_index("node", node.metadata.name):
            if is_tainted:
                self.on_add(pod)
            else:
                # TE-11: without NoExecute taints pending evictions are cancelled
                self.on_delete(pod)

    # The pod informer's handler

    def on_add(self, pod: MonitoredPod) -> None:
        outcome = self.evictions.evaluate(pod, asyncio.get_running_loop().time())
        if outcome in (EvictionOutcome.CANCELLED, EvictionOutcome.SOONER):
            self._record_event(pod.metadata.namespace, pod.metadata.name, "Cancelling deletion of Pod")
        if outcome is not EvictionOutcome.UNCHANGED:
            self._changed.set()

    def on_update(self, old: MonitoredPod, new: MonitoredPod) -> None:
        # TE-13: only its tolerations and its node matter.
        if (old.spec.tolerations, old.spec.node_name) != (new.spec.tolerations, new.spec.node_name):
            self.on_add(new)

    def on_delete(self, pod: MonitoredPod) -> None:
        if self.evictions.cancel(pod.metadata.uid):
            self._record_event(pod.metadata.namespace, pod.metadata.name, "Cancelling deletion of Pod")
            self._changed.set()

    # Evicting

    async def _enqueue_due(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            for eviction in self.evictions.take_due(loop.time()):
                self.queue.add(eviction.uid)
            left = self.evictions.next_due - loop.time()
            await wait_until_set(self._changed, seconds=min(max(0.0, left), _LONGEST_SLEEP_SECONDS))

    async def reconcile(self, uid: str) -> Again | None:
        eviction = self.evictions.due(uid)
        if eviction is None:
            return None
        if not self._are_caches_live() or not await self._is_cache_current(eviction.node):
            return Again(_CATCH_UP_SECONDS)
        if self.evictions.due(uid) is not eviction:
            # Cancelled during the request.
            return None
        if not eviction.is_reported:
            eviction.is_reported = True
            self._record_event(eviction.namespace, eviction.name, "Marking for deletion Pod")
        await self._evict(eviction)
        self.evictions.finish(uid)
        return None

    def _are_caches_live(self) -> bool:
        return all(informer.has_synced and informer.is_live for informer in (self._nodes, self._pods))

    async def _is_cache_current(self, name: str) -> bool:
        """Whether the node has the same taints on the server as in the cache; true if it is gone (TE-12)."""
        now = asyncio.get_running_loop().time()
        asked_at, was_same = self._asked.get(name, (-math.inf, False))
        if was_same and now - asked_at < _CATCH_UP_SECONDS:
            return True
        try:
            node = await self._client.get(NODES, name, view=MonitoredNode)
        except NotFoundError:
            return True
        known = {(each.key, each.value) for each in self.evictions.taints_of(name)}
        is_same = known == {(each.key, each.value) for each in evicting_taints(node.spec.taints)}
        self._asked[name] = (now, is_same)
        return is_same

    def forget_node(self, name: str) -> None:
        self.evictions.forget_node(name)
        self._asked.pop(name, None)

    async def _evict(self, eviction: Eviction) -> None:
        """Set DisruptionTarget and delete the pod (TE-16); raises PodlifeError on refusal."""
        name, namespace, uid = eviction.name, eviction.namespace, eviction.uid
        try:
            pod: Object = await self._client.get(PODS, name, namespace)
            if pod["metadata"]["uid"] != uid:
                return
            await self._mark(pod)
            await self._delete(eviction)
        except NotFoundError:
            # Already deleted.
            return
        self.metrics.deletions += 1
        self.metrics.delay_seconds.observe(asyncio.get_running_loop().time() - eviction.due_at)

    async def _delete(self, eviction: Eviction) -> None:
        options = DeleteOptions(uid=eviction.uid)
        try:
            await self._client.delete(
                PODS, eviction.name, eviction.namespace, options=options, metadata_only=True
            )
        except ConflictError as error:
            # The pod was recreated under the same name.
            raise NotFoundError(str(error)) from error

    async def _mark(self, pod: Object) -> None:
        old = pod.get("status") or {}
        new = with_disruption_target(pod, format_time(self._clock.now()))
        patch = create_two_way_merge_patch({"status": old}, {"status": new}, "v1", "Pod")
        if patch:
            metadata = pod["metadata"]
            await self._client.patch(
                PODS,
                metadata["name"],
                {**patch, "metadata": {"uid": metadata["uid"]}},
                metadata["namespace"],
                type=PatchType.STRATEGIC,
                subresource="status",
            )

    def _record_event(self, namespace: str, name: str, what: str) -> None:
        # Without UID, as upstream: the pod may be gone.
        regarding = {"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "v1"}
        self._recorder.event(regarding, "Normal", _REASON, f"{what} {namespace}/{name}")


def with_disruption_target(pod: Object, now: str) -> Object:
    """The pod's status with DisruptionTarget; an existing condition keeps its time."""
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or ())
    condition: Object = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": now,
    }
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    place = next((n for n, each in enumerate(conditions) if each.get("type") == condition["type"]), None)
    if place is None:
        return {**status, "conditions": [*conditions, condition]}
    known = conditions[place]
    if known.get("status") == "True" and known.get("lastTransitionTime"):
        condition["lastTransitionTime"] = known["lastTransitionTime"]
    if all(known.get(field) == condition[field] for field in ("status", "reason", "message")):
        return status
    conditions[place] = condition
    return {**status, "conditions": conditions}


class _NodeEvents:
    """TE-13: only the taints that evict matter."""

    def __init__(self, owner: TaintEvictionController) -> None:
        self._owner = owner

    def on_add(self, node: MonitoredNode) -> None:
        self._owner.note_node(node)

    def on_update(self, old: MonitoredNode, new: MonitoredNode) -> None:
        if evicting_taints(old.spec.taints) != evicting_taints(new.spec.taints):
            self._owner.note_node(new)

    def on_delete(self, node: MonitoredNode) -> None:
        self._owner.forget_node(node.metadata.name)
