"""Resources allocated to the pods of a node, and resizes of running pods.

The admitter keeps each pod as it was admitted or last resized: its resources are the allocation, with which the pod is
run and reported. A resize that fits is allocated at once and then made by the runtime; one that does not is deferred
and evaluated again when resources become free. Conditions and events are upstream's.

Nothing is written to disk: a restarted kubelet takes the allocation from the pod's status.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.api.pod_requests import pod_requests
from podlife.kubelet.admission import Admitter
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.kuberuntime.resources import resize_of
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, status_by_name
from podlife.kubelet.status.conditions import condition

_PENDING, _IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
_RETRY_SECONDS = 180.0
_RESIZABLE = ("cpu", "memory")


def reported_allocation(pod: NodePod) -> NodePod:
    """The pod with the resources that its status reports as allocated."""
    status = pod.get("status") or {}
    reported = status_by_name(status.get("initContainerStatuses"), status.get("containerStatuses"))

    def resources(container: Container) -> Object:
        wanted = container.get("resources") or {}
        found = reported.get(container["name"], {})
        if "resources" not in found:
            return dict(wanted)
        limits = (found["resources"] or {}).get("limits")
        held = {"requests": found.get("allocatedResources"), "limits": limits}
        return {**wanted, **{side: _held(wanted.get(side), each or {}) for side, each in held.items()}}

    own = {each["name"]: resources(each) for each in _containers(pod)}
    return _with_resources(pod, own, pod["spec"].get("resources"))


def _held(wanted: Mapping[str, Any] | None, held: Mapping[str, Any]) -> Object:
    fixed = {name: each for name, each in (wanted or {}).items() if name not in _RESIZABLE}
    return fixed | {name: held[name] for name in _RESIZABLE if name in held}


def _containers(pod: Pod) -> list[Container]:
    return [*init_containers_of(pod), *containers_of(pod)]


def _with_resources(pod: NodePod, own: Mapping[str, Any], whole: Mapping[str, Any] | None) -> NodePod:
    """`own` are the resources of containers, by name; `whole` are those of the pod, if any."""
    spec = pod["spec"]
    is_same = all(
        _non_empty(own[each["name"]]) == _non_empty(each.get("resources")) for each in _containers(pod)
    )
    if is_same and _non_empty(whole) == _non_empty(spec.get("resources")):
        return pod
    changed: Object = {
        key: [{**each, "resources": _non_empty(own[each["name"]])} for each in spec[key]]
        for key in ("containers", "initContainers")
        if spec.get(key)
    }
    if whole or "resources" in spec:
        changed["resources"] = whole or {}
    return NodePod({**pod, "spec": {**spec, **changed}})


def _non_empty(resources: Mapping[str, Any] | None) -> Object:
    return {side: each for side, each in (resources or {}).items() if each}


class AllocationManager:
    """`find` returns a desired pod by its UID, `sync` syncs it."""

    def __init__(
        self,
        admitter: Admitter,
        find: Callable[[str], NodePod | None],
        events: PodEvents,
        sync: Callable[[str], None],
    ) -> None:
        self.admitter = admitter
        # Set when all pods of the node are known: earlier, resources that are in use would look free.
        self.is_enabled = False
        self._find = find
        self._events = events
        self._sync = sync
        # Conditions of resizes, by UID and type.
        self._conditions: dict[str, dict[str, Object]] = {}
        # UIDs, in order of their requests.
        self._pending: dict[str, None] = {}
        # Deferred resizes are evaluated again after a while, should the node have grown.
        self._retries = DueQueue()

    async def run(self) -> None:
        while True:
            await self._retries.wait()
            self.retry()

    def allocated(self, pod: NodePod) -> NodePod:
        """The pod with its allocated resources."""
        held = self.admitter.admitted(pod.uid)
        if held is None or held["spec"] is pod["spec"]:
            return pod
        resources = {each["name"]: each.get("resources") for each in _containers(held)}
        if any(each["name"] not in resources for each in _containers(pod)):
            return pod
        return _with_resources(pod, resources, held["spec"].get("resources"))

    def conditions(self, uid: str) -> list[Object]:
        found = self._conditions.get(uid, {})
        return [found[each] for each in (_PENDING, _IN_PROGRESS) if each in found]

    def add(self, pod: NodePod) -> None:
        """For a pod that was admitted: go on where an earlier kubelet was."""
        for each in (pod.get("status") or {}).get("conditions") or ():
            if each["type"] in (_PENDING, _IN_PROGRESS):
                untimed = {key: value for key, value in each.items() if not key.startswith("last")}
                self._conditions.setdefault(pod.uid, {})[each["type"]] = untimed
        self.update(pod)

    def update(self, pod: NodePod) -> None:
        """The spec is new: evaluate whether it can be allocated."""
        if self.allocated(pod) is pod:
            # A resize may have been taken back.
            self._pending.pop(pod.uid, None)
            self._conditions.get(pod.uid, {}).pop(_PENDING, None)
        else:
            self._pending[pod.uid] = None
            self.retry()

    def retry(self) -> None:
        """Evaluate all resizes that are not allocated yet."""
        if not self.is_enabled or not self._pending:
            return
        pods = [pod for uid in self._pending if (pod := self._find(uid)) is not None]
        self._pending = dict.fromkeys(pod.uid for pod in pods)
        for pod in sorted(pods, key=self._urgency):
            before = self.conditions(pod.uid)
            self._evaluate(pod)
            if before != self.conditions(pod.uid):
                self._sync(pod.uid)

    def _urgency(self, pod: NodePod) -> tuple[bool, int, bool]:
        """Resizes that need nothing come first, then those of important pods; else the first one."""
        old, new = pod_requests(self.allocated(pod)), pod_requests(pod)
        is_growing = any(new.get(each, 0) > old.get(each, 0) for each in _RESIZABLE)
        is_guaranteed = (pod.get("status") or {}).get("qosClass") == "Guaranteed"
        return is_growing, -int(pod["spec"].get("priority") or 0), not is_guaranteed

    def _evaluate(self, pod: NodePod) -> None:
        uid = pod.uid
        if self.admitter.admitted(uid) is None or self.allocated(pod) is pod:
            del self._pending[uid]
            return
        conditions = self._conditions.setdefault(uid, {})
        before = conditions.pop(_PENDING, {})
        failure = self.admitter.resize(pod)
        if failure is None:
            del self._pending[uid]
            self._retries.forget(uid)
            conditions[_IN_PROGRESS] = condition(pod, _IN_PROGRESS, True)
            self._event(pod, "ResizeStarted", "Pod resize started")
            return
        self._retries.put(uid, asyncio.get_running_loop().time() + _RETRY_SECONDS)
        pending = conditions[_PENDING] = condition(pod, _PENDING, True, "Deferred", failure.message)
        if any(before.get(key) != pending.get(key) for key in ("reason", "observedGeneration")):
            self._event(pod, "ResizeDeferred", f"Pod resize {failure.reason}", error=failure.message)

    def observe(self, pod: NodePod, observed: ObservedPod) -> None:
        """Whether the containers have what is allocated; `pod` has its allocated resources."""
        known = observed.newest
        conditions = self._conditions.get(pod.uid, {})
        if any(each["name"] in known and resize_of(each, known[each["name"]]) for each in _containers(pod)):
            conditions = self._conditions.setdefault(pod.uid, conditions)
            conditions.setdefault(_IN_PROGRESS, condition(pod, _IN_PROGRESS, True))
        elif (done := conditions.pop(_IN_PROGRESS, None)) is not None:
            self._event(pod, "ResizeCompleted", "Pod resize completed", done)

    def fail(self, pod: NodePod, message: str) -> None:
        """The runtime could not make the resize; it is tried again."""
        conditions = self._conditions.setdefault(pod.uid, {})
        before = conditions.get(_IN_PROGRESS, condition(pod, _IN_PROGRESS, True))
        conditions[_IN_PROGRESS] = failed = {**before, "reason": "Error", "message": message}
        if failed != before:
            self._event(pod, "ResizeError", "Pod resize error", failed, error=message)

    def release(self, uid: str) -> None:
        """Its containers have ended."""
        self.admitter.release(uid)
        self.retry()

    def keep_only(self, is_wanted: Callable[[str], bool]) -> None:
        self.admitter.keep_only(is_wanted)
        for uid in [each for each in self._conditions if not is_wanted(each)]:
            del self._conditions[uid]
            self._retries.forget(uid)

    def _event(
        self, pod: NodePod, reason: str, text: str, of: Mapping[str, Any] | None = None, *, error: str = ""
    ) -> None:
        """In upstream's form. `of` is the condition whose generation counts, else it is the pod's."""
        lists = {"initContainers": init_containers_of(pod), "containers": containers_of(pod)}
        generation = (of or {}).get("observedGeneration") or pod["metadata"].get("generation") or 0
        summary = {
            **{
                key: [_summary(each) for each in containers]
                for key, containers in lists.items()
                if containers
            },
            "generation": generation,
            **({"error": error} if error else {}),
        }
        message = json.dumps(summary, separators=(",", ":"), ensure_ascii=False)
        self._events.pod(pod, reason, f"{text}: {message}", is_warning=bool(error))


def _summary(container: Container) -> Object:
    found = _non_empty(container.get("resources"))
    resources = {side: dict(sorted(found[side].items())) for side in ("limits", "requests") if side in found}
    return {"name": container["name"], "resources": resources}
