"""Assigns nodes to pending pods, one pod at a time, and binds them through the API.

A pod counts on its node from its assignment until the binding has certainly failed, so resources are never assigned
twice. Nothing is scheduled while a cache is stale. Bindings are sent concurrently and carry the UID of their
pod. Preemption is not implemented.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.client import NODES, PODS, PatchType
from podlife.controller import ControlPlane
from podlife.errors import ApiError, NotFoundError, PodlifeError, UnreachableError
from podlife.informer import Informer
from podlife.scheduler.demand import Demand, demand_of
from podlife.scheduler.node_cache import NodeCache
from podlife.scheduler.schedule_algorithm import ScheduleAlgorithm, unschedulable_message
from podlife.scheduler.scheduling_queue import SchedulingQueue
from podlife.scheduler.views import SchedulerCondition, SchedulerNode, SchedulerPod

log = logging.getLogger(__name__)

DEFAULT_SCHEDULER = "default-scheduler"

# Concurrent bindings and status updates.
_AT_ONCE = 32
# Decisions before yielding to the event loop.
_BATCH = 50
_CATCH_UP_SECONDS = 1.0
_ASK_AGAIN_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_GATED = "SchedulingGated"
_UNSCHEDULABLE = "Unschedulable"


class Scheduler:
    """Schedules pods whose schedulerName is `scheduler_name`. `plane.add(Scheduler(plane))`."""

    name = "scheduler"

    def __init__(self, plane: ControlPlane, *, scheduler_name: str = DEFAULT_SCHEDULER) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._scheduler_name = scheduler_name
        self._recorder = plane.recorder(scheduler_name)
        self._nodes = NodeCache()
        self._decider = ScheduleAlgorithm(self._nodes)
        self._waiting = SchedulingQueue()
        # Assigned, and not observed on their node yet.
        self._assumed: set[str] = set()
        self._changed = asyncio.Event()
        self._acting: set[asyncio.Task[None]] = set()
        self._pod_cache: Informer[SchedulerPod] = plane.informer(PODS, view=SchedulerPod)
        self._node_cache: Informer[SchedulerNode] = plane.informer(NODES, view=SchedulerNode)
        self._pod_cache.add_handler(self)
        self._node_cache.add_handler(_NodeEvents(self._nodes, self._retry_unschedulable))

    @property
    def waiting(self) -> int:
        """Number of pods without a node."""
        return len(self._waiting)

    async def run(self) -> None:
        try:
            while True:
                await self._wait()
                await self._decide_all()
        finally:
            for task in self._acting:
                task.cancel()
            await asyncio.gather(*self._acting, return_exceptions=True)

    # The pod informer's handler

    def on_add(self, pod: SchedulerPod) -> None:
        self._update(pod)

    def on_update(self, old: SchedulerPod, new: SchedulerPod) -> None:
        self._update(new, old)

    def _update(self, pod: SchedulerPod, old: SchedulerPod | None = None) -> None:
        uid = pod.metadata.uid
        if pod.uses_resources:
            self._assumed.discard(uid)
            self._waiting.remove(uid)
            if old is not None and old.metadata.labels != pod.metadata.labels:
                self._nodes.remove_pod(uid)
            if self._nodes.where(uid) != pod.spec.node_name:
                self._nodes.put_pod(uid, demand_of(pod), pod.spec.node_name)
        elif pod.spec.node_name or not self._is_ours(pod):
            self.on_delete(pod)
        elif uid in self._assumed:
            return
        elif old is None or old.spec != pod.spec or old.metadata.labels != pod.metadata.labels:
            self._waiting.put(pod, _now())
            self._changed.set()
        else:
            self._waiting.refresh(pod)

    def on_delete(self, pod: SchedulerPod) -> None:
        uid = pod.metadata.uid
        self._assumed.discard(uid)
        self._waiting.remove(uid)
        if self._nodes.remove_pod(uid):
            self._retry_unschedulable()

    def _retry_unschedulable(self) -> None:
        """After a node was added or changed, or a pod left one."""
        self._waiting.activate_unschedulable(_now())
        self._changed.set()

    def _is_ours(self, pod: SchedulerPod) -> bool:
        is_living = pod.metadata.deletion_timestamp is None and pod.status.phase in ("", "Pending")
        return is_living and (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == self._scheduler_name

    # Deciding

    async def _wait(self) -> None:
        """Wait until a pod may be due."""
        due = self._waiting.next_time()
        try:
            async with asyncio.timeout_at(due):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _decide_all(self) -> None:
        """Schedule all pods that are due."""
        for number in count(1):
            if not (self._pod_cache.is_live and self._node_cache.is_live):
                await asyncio.sleep(_CATCH_UP_SECONDS)
                self._changed.set()
                return
            pod = self._waiting.next(_now())
            if pod is None:
                return
            await self._decide(pod)
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    async def _decide(self, pod: SchedulerPod) -> None:
        uid = pod.metadata.uid
        if pod.spec.scheduling_gates:
            names = ", ".join(sorted(gate.name for gate in pod.spec.scheduling_gates))
            self._waiting.remove(uid)
            await self._act(
                self._report(pod, _GATED, f"Scheduling is blocked due to non-empty scheduling gates: {names}")
            )
            return
        demand = demand_of(pod)
        decided = self._decider.decide(demand)
        if isinstance(decided, Counter):
            self._waiting.failed(uid, _now(), is_waiting=True)
            await self._act(
                self._report(pod, _UNSCHEDULABLE, unschedulable_message(len(self._nodes), decided))
            )
            return
        self._waiting.remove(uid)
        self._assumed.add(uid)
        self._nodes.put_pod(uid, demand, decided)
        await self._act(self._bind(pod, demand, decided))

    async def _act(self, act: Coroutine[Any, Any, None]) -> None:
        while len(self._acting) >= _AT_ONCE:
            await asyncio.wait(self._acting, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.get_running_loop().create_task(act)
        self._acting.add(task)
        task.add_done_callback(self._acting.discard)

    # Acting

    async def _bind(self, pod: SchedulerPod, demand: Demand, node_name: str) -> None:
        metadata = pod.metadata
        path = PODS.path(metadata.namespace, metadata.name, "binding")
        body: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        try:
            await self._client.request("POST", path, body=body)
        except PodlifeError as error:
            await self._not_bound(pod, node_name, error)
            return
        message = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node_name}"
        self._recorder.event(_reference(pod), "Normal", "Scheduled", message)

    async def _not_bound(self, pod: SchedulerPod, node_name: str, error: PodlifeError) -> None:
        """Release the assumed resources, unless the binding may have succeeded."""
        uid = pod.metadata.uid
        if isinstance(error, UnreachableError) and await self._is_bound(pod):
            return
        if uid not in self._assumed:
            return
        self._assumed.discard(uid)
        self._nodes.remove_pod(uid)
        if isinstance(error, ApiError) and error.code in (404, 409):
            # Deleted, recreated, or bound by another scheduler: the cache will show it.
            log.info("pod %s not bound to %s: %s", pod.metadata.name, node_name, error)
        else:
            log.warning("binding pod %s to %s failed: %s", pod.metadata.name, node_name, error)
        current = self._pod_cache.cache.get(pod.metadata.namespace, pod.metadata.name)
        if (
            current is not None
            and current.metadata.uid == uid
            and self._is_ours(current)
            and not current.uses_resources
        ):
            self._waiting.put(current, _now())
            self._waiting.failed(uid, _now(), is_waiting=False)
        self._retry_unschedulable()

    async def _is_bound(self, pod: SchedulerPod) -> bool:
        """Ask the server for up to a minute: resources held too long are better than resources assigned twice."""
        for seconds in _ASK_AGAIN_SECONDS:
            try:
                found: SchedulerPod = await self._client.get(
                    PODS, pod.metadata.name, pod.metadata.namespace, view=SchedulerPod
                )
            except NotFoundError:
                return False
            except PodlifeError:
                await asyncio.sleep(seconds)
                continue
            return found.metadata.uid == pod.metadata.uid and bool(found.spec.node_name)
        return False

    async def _report(self, pod: SchedulerPod, reason: str, message: str) -> None:
        """Write the PodScheduled condition if it changed; record an event for each attempt."""
        if reason == _UNSCHEDULABLE:
            self._recorder.event(_reference(pod), "Warning", "FailedScheduling", message)
        known = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        if known is not None and (known.status, known.reason, known.message) == ("False", reason, message):
            return
        try:
            await self._client.patch(
                PODS,
                pod.metadata.name,
                self._condition(pod, known, reason, message),
                pod.metadata.namespace,
                type=PatchType.STRATEGIC,
                subresource="status",
            )
        except PodlifeError as error:
            log.info("pod %s: condition %s not written: %s", pod.metadata.name, reason, error)

    def _condition(
        self, pod: SchedulerPod, known: SchedulerCondition | None, reason: str, message: str
    ) -> Object:
        condition: Object = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = format_time(self._clock.now())
        return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _reference(pod: SchedulerPod) -> Object:
    metadata = pod.metadata
    names = {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}
    return {"kind": "Pod", "apiVersion": "v1", **names}


class _NodeEvents:
    def __init__(self, nodes: NodeCache, retry_unschedulable: Callable[[], None]) -> None:
        self._nodes = nodes
        self._retry_unschedulable = retry_unschedulable

    def on_add(self, node: SchedulerNode) -> None:
        self._nodes.put_node(node)
        self._retry_unschedulable()

    def on_update(self, old: SchedulerNode, new: SchedulerNode) -> None:
        if (old.spec, old.status, old.metadata.labels) != (new.spec, new.status, new.metadata.labels):
            self.on_add(new)

    def on_delete(self, node: SchedulerNode) -> None:
        self._nodes.remove_node(node.metadata.name)
