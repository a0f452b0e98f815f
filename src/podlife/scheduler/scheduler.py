"""Assigns nodes to pending pods, one pod at a time, and binds them through the API.

A pod counts on its node from its assignment until the binding has certainly failed, so resources are never assigned
twice. Nothing is scheduled while a cache is stale. Bindings are sent concurrently and carry the UID of their
pod. A pod that fits nowhere may preempt others (`preemption`): they are deleted by UID, with their grace period, and it
waits for its place on the node it is nominated for. It preempts no more while those pods have not been seen to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from itertools import count
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.client import NODES, POD_DISRUPTION_BUDGETS, PODS, DeleteOptions, PatchType
from podlife.controller import ControlPlane
from podlife.errors import ApiError, ConflictError, NotFoundError, PodlifeError, UnreachableError
from podlife.informer import Informer
from podlife.scheduler.demand import Demand, demand_of
from podlife.scheduler.node_cache import NodeCache
from podlife.scheduler.nominator import Nominator
from podlife.scheduler.preemption import DISRUPTION_TARGET, PREEMPTED, Candidate, Preemption
from podlife.scheduler.schedule_algorithm import Obstacles, ScheduleAlgorithm, unschedulable_message
from podlife.scheduler.scheduling_queue import SchedulingQueue
from podlife.scheduler.views import Budget, SchedulerNode, SchedulerPod
from podlife.scheduler.volume_binding import PodClaims, VolumeBinding, WaitForClaimsError

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
_NO_DEVICES = "this scheduler does not allocate devices for spec.resourceClaims"


class Scheduler:
    """Schedules pods whose schedulerName is `scheduler_name`. `plane.add(Scheduler(plane))`."""

    name = "scheduler"

    def __init__(self, plane: ControlPlane, *, scheduler_name: str = DEFAULT_SCHEDULER) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._scheduler_name = scheduler_name
        self._recorder = plane.recorder(scheduler_name)
        self._nodes = NodeCache()
        self._nominator = Nominator()
        self._decider = ScheduleAlgorithm(self._nodes, self._nominator)
        # Pods on nodes, by UID, as last seen.
        self._placed: dict[str, SchedulerPod] = {}
        self._preemption = Preemption(self._nodes, self._nominator, self._placed.get)
        # Victims of pods, by UID, until they are seen to end.
        self._victims: dict[str, set[str]] = {}
        # Whether a pod was not decided because its victims have not been seen to end.
        self._awaits_victims = False
        self._waiting = SchedulingQueue()
        # Assigned, and not observed on their node yet.
        self._assumed: set[str] = set()
        self._changed = asyncio.Event()
        self._acting: set[asyncio.Task[None]] = set()
        # Not more than there is room for on the nodes.
        self._binding_volumes: set[asyncio.Task[None]] = set()
        self._pod_cache: Informer[SchedulerPod] = plane.informer(PODS, view=SchedulerPod)
        self._node_cache: Informer[SchedulerNode] = plane.informer(NODES, view=SchedulerNode)
        self._budgets: Informer[Budget] = plane.informer(POD_DISRUPTION_BUDGETS, view=Budget)
        self._volumes = VolumeBinding(plane, self._retry_unschedulable)
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
            tasks = self._acting | self._binding_volumes
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # The pod informer's handler

    def on_add(self, pod: SchedulerPod) -> None:
        self._update(pod)

    def on_update(self, old: SchedulerPod, new: SchedulerPod) -> None:
        self._update(new, old)

    def _update(self, pod: SchedulerPod, old: SchedulerPod | None = None) -> None:
        uid = pod.metadata.uid
        if pod.uses_resources:
            self._assumed.discard(uid)
            self._forget_pending(uid)
            self._placed[uid] = pod
            is_resized = old is not None and self._is_resized(pod, old)
            if is_resized or (old is not None and old.metadata.labels != pod.metadata.labels):
                self._nodes.remove_pod(uid)
            if self._nodes.where(uid) != pod.spec.node_name:
                self._nodes.put_pod(uid, demand_of(pod), pod.spec.node_name)
            is_ending = pod.metadata.deletion_timestamp is not None
            if is_resized or (is_ending and self._awaits_victims):
                self._awaits_victims = False
                self._retry_unschedulable()
        elif pod.spec.node_name or not self._is_ours(pod):
            self.on_delete(pod)
        elif uid in self._assumed:
            return
        else:
            self._note_nomination(pod, old)
            self._note_pending(pod, old)

    def _is_resized(self, pod: SchedulerPod, old: SchedulerPod) -> bool:
        """Whether other requests count for it now."""
        has_changed = (pod.spec, pod.status) != (old.spec, old.status)
        return has_changed and self._nodes.requests_of(pod.metadata.uid) not in (
            None,
            demand_of(pod).requests,
        )

    def _note_nomination(self, pod: SchedulerPod, old: SchedulerPod | None) -> None:
        """A nomination that is not written yet is newer than an empty one that has not changed."""
        name = pod.status.nominated_node_name
        if name == (old.status.nominated_node_name if old is not None else ""):
            return
        if name:
            self._nominator.put(pod, name)
        elif self._nominator.remove(pod.metadata.uid):
            self._waiting.put(pod, _now())
            self._changed.set()

    def _note_pending(self, pod: SchedulerPod, old: SchedulerPod | None) -> None:
        if old is None or old.spec != pod.spec or old.metadata.labels != pod.metadata.labels:
            self._waiting.put(pod, _now())
            self._changed.set()
        else:
            self._waiting.refresh(pod)

    def on_delete(self, pod: SchedulerPod) -> None:
        uid = pod.metadata.uid
        self._assumed.discard(uid)
        self._placed.pop(uid, None)
        # Both leave room for others: a place on a node, and one that was kept.
        was_nominated = self._forget_pending(uid)
        if self._nodes.remove_pod(uid) or was_nominated:
            self._retry_unschedulable()

    def _forget_pending(self, uid: str) -> bool:
        """Return whether it was nominated for a node."""
        self._waiting.remove(uid)
        self._victims.pop(uid, None)
        return self._nominator.remove(uid)

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
            if not all(
                each.is_live for each in (self._pod_cache, self._node_cache, self._budgets, self._volumes)
            ):
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
        try:
            if pod.spec.resource_claims:
                raise WaitForClaimsError(_NO_DEVICES)
            claims = self._volumes.claims_of(pod, self._users_of_claims)
        except WaitForClaimsError as error:
            self._waiting.failed(uid, _now(), is_waiting=True)
            obstacles = {state.name: (str(error),) for state in self._nodes}
            await self._post_filter(
                pod, demand, obstacles, unschedulable_message(len(self._nodes), {}, str(error))
            )
            return
        own = None if claims is None else claims.obstacle
        decided = self._decider.decide(demand, uid, own)
        if not isinstance(decided, str):
            self._waiting.failed(uid, _now(), is_waiting=True)
            message = unschedulable_message(len(self._nodes), decided)
            if own is not None:
                # Where its volumes cannot be used, preemption does not help.
                unusable = {state.name: (why,) for state in self._nodes if (why := own(state))}
                decided = {**decided, **unusable}
            await self._post_filter(pod, demand, decided, message)
            # With many nodes the search for victims takes as long as many decisions.
            await asyncio.sleep(0)
            return
        self._forget_pending(uid)
        self._assumed.add(uid)
        self._placed[uid] = pod
        self._nodes.put_pod(uid, demand, decided)
        if claims is not None and claims.unbound:
            self._start(self._bind_with_volumes(pod, demand, decided, claims), self._binding_volumes)
            return
        await self._act(self._bind(pod, demand, decided))

    async def _post_filter(
        self, pod: SchedulerPod, demand: Demand, obstacles: Obstacles, message: str
    ) -> None:
        """Look for pods to preempt; report the outcome."""
        uid = pod.metadata.uid
        if not obstacles:
            await self._act(self._report(pod, _UNSCHEDULABLE, message))
            return
        if self._has_victims(uid):
            self._awaits_victims = True
            return
        budgets = self._budgets.cache.list()
        found = self._preemption.evaluate(pod, demand, obstacles, budgets, self._clock.now())
        if isinstance(found, Candidate):
            lower = list(self._nominator.below(found.node_name, demand.priority))
            self._nominator.put(pod, found.node_name)
            self._victims[uid] = {each.metadata.uid for each in found.victims}
            await self._act(self._preempt(pod, found, lower, message))
            return
        name = pod.status.nominated_node_name
        if found.ends_nomination and (self._nominator.remove(uid) or name):
            name = ""
            self._retry_unschedulable()
        message = f"{message} preemption: {found.message}"
        await self._act(self._report(pod, _UNSCHEDULABLE, message, nominated=name))

    def _has_victims(self, uid: str) -> bool:
        """Whether a pod has preempted others whose end the cache does not show yet."""
        found = (self._placed.get(victim) for victim in self._victims.get(uid, ()))
        if any(each is not None and each.metadata.deletion_timestamp is None for each in found):
            return True
        self._victims.pop(uid, None)
        return False

    def _users_of_claims(self) -> Iterable[SchedulerPod]:
        """The pods that are on a node, or will be."""
        pods = self._pod_cache.cache.list()
        return (pod for pod in pods if pod.uses_resources or pod.metadata.uid in self._assumed)

    async def _act(self, act: Coroutine[Any, Any, None]) -> None:
        while len(self._acting) >= _AT_ONCE:
            await asyncio.wait(self._acting, return_when=asyncio.FIRST_COMPLETED)
        self._start(act, self._acting)

    def _start(self, act: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(act)
        among.add(task)
        task.add_done_callback(among.discard)

    # Acting

    async def _bind_with_volumes(
        self, pod: SchedulerPod, demand: Demand, node_name: str, claims: PodClaims
    ) -> None:
        """Volumes may take minutes. The pod counts on its node meanwhile."""
        try:
            await claims.bind(node_name, lambda: pod.metadata.uid in self._assumed)
        except PodlifeError as error:
            message = f'running PreBind plugin "VolumeBinding": {error}'
            self._recorder.event(_reference(pod), "Warning", "FailedScheduling", message)
            await self._not_bound(pod, node_name, error)
            return
        await self._bind(pod, demand, node_name)

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
        self._placed.pop(uid, None)
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

    async def _preempt(
        self, pod: SchedulerPod, found: Candidate, lower: list[SchedulerPod], message: str
    ) -> None:
        """Nominate the pod, end nominations of lower priority for its node, and delete its victims."""
        await self._report(pod, _UNSCHEDULABLE, message, nominated=found.node_name)
        living = [each for each in found.victims if each.metadata.deletion_timestamp is None]
        try:
            for each in lower:
                await self._patch_status(each, {"nominatedNodeName": None})
            async with asyncio.TaskGroup() as group:
                for victim in living:
                    group.create_task(self._evict(victim, pod, found.node_name))
        except* PodlifeError as errors:
            log.warning("preemption for pod %s failed: %s", pod.metadata.name, errors.exceptions[0])
            # What was deleted stays so; the rest is decided again.
            self._victims.pop(pod.metadata.uid, None)
            self._waiting.failed(pod.metadata.uid, _now(), is_waiting=False)
            self._changed.set()

    async def _evict(self, victim: SchedulerPod, preemptor: SchedulerPod, node_name: str) -> None:
        name = preemptor.spec.scheduler_name or DEFAULT_SCHEDULER
        message = f"{name}: preempting to accommodate a higher priority pod"
        metadata = victim.metadata
        try:
            if condition := self._condition(victim, DISRUPTION_TARGET, "True", PREEMPTED, message):
                await self._patch_status(victim, {"conditions": [condition]})
            options = DeleteOptions(uid=metadata.uid)
            await self._client.delete(
                PODS, metadata.name, metadata.namespace, options=options, metadata_only=True
            )
        except (NotFoundError, ConflictError):
            # It is gone, or another has its name.
            return
        text = f"Preempted by pod {preemptor.metadata.uid} on node {node_name}"
        self._recorder.event(_reference(victim), "Normal", "Preempted", text)

    async def _report(
        self, pod: SchedulerPod, reason: str, message: str, *, nominated: str | None = None
    ) -> None:
        """Write the PodScheduled condition and the nomination if they changed; record an event for each attempt."""
        if reason == _UNSCHEDULABLE:
            self._recorder.event(_reference(pod), "Warning", "FailedScheduling", message)
        changes: Object = {}
        if condition := self._condition(pod, "PodScheduled", "False", reason, message):
            changes["conditions"] = [condition]
        if nominated is not None and nominated != pod.status.nominated_node_name:
            changes["nominatedNodeName"] = nominated or None
        try:
            if changes:
                await self._patch_status(pod, changes)
        except PodlifeError as error:
            log.info("pod %s: condition %s not written: %s", pod.metadata.name, reason, error)

    async def _patch_status(self, pod: SchedulerPod, changes: Object) -> None:
        metadata = pod.metadata
        await self._client.patch(
            PODS,
            metadata.name,
            {"metadata": {"uid": metadata.uid}, "status": changes},
            metadata.namespace,
            type=PatchType.STRATEGIC,
            subresource="status",
        )

    def _condition(
        self, pod: SchedulerPod, type_: str, status: str, reason: str, message: str
    ) -> Object | None:
        """None if the pod has this condition already."""
        known = pod.condition(type_)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return None
        condition: Object = {"type": type_, "status": status, "reason": reason, "message": message}
        if known is None or known.status != status:
            condition["lastTransitionTime"] = format_time(self._clock.now())
        return condition


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
