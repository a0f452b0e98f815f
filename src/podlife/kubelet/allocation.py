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
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.api.pod_requests import pod_requests
from podlife.kubelet.admission import Admitter
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.kuberuntime.resources import resize_of
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    condition_of,
    containers_of,
    init_containers_of,
    status_by_name,
)
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

    whole = pod["spec"].get("resources") or {}
    return _with_resources(pod, {each["name"]: resources(each) for each in _containers(pod)}, whole)


def _held(wanted: Mapping[str, Any] | None, held: Mapping[str, Any]) -> Object:
    fixed = {name: each for name, each in (wanted or {}).items() if name not in _RESIZABLE}
    return fixed | {name: held[name] for name in _RESIZABLE if name in held}


def _containers(pod: Pod) -> list[Container]:
    return [*init_containers_of(pod), *containers_of(pod)]


def _with_resources(pod: NodePod, resources: Mapping[str, Object], whole: Mapping[str, Any]) -> NodePod:
    """`resources` are those of containers, by name; `whole` are those of the pod, or nothing."""

    def with_own(container: Container) -> Object:
        return {**container, "resources": _non_empty(resources[container["name"]])}

    is_same = all(
        _non_empty(resources[each["name"]]) == _non_empty(each.get("resources")) for each in _containers(pod)
    )
    if is_same and _non_empty(whole) == _non_empty(pod["spec"].get("resources")):
        return pod
    lists = {
        key: [with_own(each) for each in pod["spec"][key]]
        for key in ("containers", "initContainers")
        if pod["spec"].get(key)
    }
    level = {"resources": whole} if whole or "resources" in pod["spec"] else {}
    return NodePod({**pod, "spec": {**pod["spec"], **lists, **level}})


def _non_empty(resources: Mapping[str, Any] | None) -> Object:
    return {side: each for side, each in (resources or {}).items() if each}


@dataclass(slots=True)
class _Resize:
    """Its conditions, as they are reported."""

    pending: Object | None = None
    in_progress: Object | None = None


class AllocationManager:
    """`find` returns a desired pod by its UID, `sync` syncs it."""

    def __init__(
        self,
        admitter: Admitter,
        find: Callable[[str], NodePod | None],
        events: PodEvents,
        sync: Callable[[str], None],
    ) -> None:
        # Set when all pods of the node are known: earlier, resources that are in use would look free.
        self.is_enabled = False
        # Deferred resizes are evaluated again after a while, should the node have grown.
        self._retries = DueQueue()
        self.admitter = admitter
        self._find = find
        self._events = events
        self._sync = sync
        self._resizes: dict[str, _Resize] = {}
        # UIDs, in order of their requests.
        self._pending: dict[str, None] = {}

    async def run(self) -> None:
        while True:
            await self._retries.wait()
            self.retry()

    def allocated(self, pod: NodePod) -> NodePod:
        """The pod with its allocated resources."""
        held = self.admitter.admitted(pod.uid)
        if held is None or held["spec"] is pod["spec"]:
            return pod
        resources = {each["name"]: each.get("resources") or {} for each in _containers(held)}
        if any(each["name"] not in resources for each in _containers(pod)):
            return pod
        return _with_resources(pod, resources, held["spec"].get("resources") or {})

    def conditions(self, uid: str) -> list[Object]:
        resize = self._resizes.get(uid, _Resize())
        return [each for each in (resize.pending, resize.in_progress) if each is not None]

    def add(self, pod: NodePod) -> None:
        """For a pod that was admitted: go on where an earlier kubelet was."""
        status = pod.get("status") or {}
        pending, in_progress = (condition_of(status, each) for each in (_PENDING, _IN_PROGRESS))
        if pending is not None or in_progress is not None:
            self._resizes[pod.uid] = _Resize(_untimed(pending), _untimed(in_progress))
        self.update(pod)

    def update(self, pod: NodePod) -> None:
        """The spec is new: evaluate whether it can be allocated."""
        if self.allocated(pod) is pod:
            self._pending.pop(pod.uid, None)
            if resize := self._resizes.get(pod.uid):
                # A resize that was taken back.
                resize.pending = None
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
            is_allocated = self._evaluate(pod)
            if is_allocated or before != self.conditions(pod.uid):
                self._sync(pod.uid)

    def _urgency(self, pod: NodePod) -> tuple[bool, int, bool]:
        """Resizes that need nothing come first, then those of important pods; else the first one."""
        old, new = pod_requests(self.allocated(pod)), pod_requests(pod)
        is_growing = any(new.get(each, 0) > old.get(each, 0) for each in _RESIZABLE)
        is_guaranteed = (pod.get("status") or {}).get("qosClass") == "Guaranteed"
        return is_growing, -int(pod["spec"].get("priority") or 0), not is_guaranteed

    def _evaluate(self, pod: NodePod) -> bool:
        """Whether the resize is now allocated."""
        uid = pod.uid
        if self.admitter.admitted(uid) is None or self.allocated(pod) is pod:
            self._pending.pop(uid, None)
            return False
        resize = self._resizes.setdefault(uid, _Resize())
        failure = self.admitter.resize(pod)
        if failure is None:
            del self._pending[uid]
            self._retries.forget(uid)
            resize.pending, resize.in_progress = None, condition(pod, _IN_PROGRESS, True)
            self._event(pod, "ResizeStarted", "Pod resize started")
            return True
        self._retries.put(uid, asyncio.get_running_loop().time() + _RETRY_SECONDS)
        before, resize.pending = resize.pending, condition(pod, _PENDING, True, "Deferred", failure.message)
        if before is None or _identity(before) != _identity(resize.pending):
            text = f"Pod resize {failure.reason}"
            self._event(pod, "ResizeDeferred", text, error=failure.message, is_warning=True)
        return False

    def observe(self, pod: NodePod, observed: ObservedPod) -> None:
        """Whether the containers have what is allocated; `pod` has its allocated resources."""
        resize = self._resizes.get(pod.uid)
        known = observed.newest
        if any(
            (newest := known.get(each["name"])) is not None and resize_of(each, newest) is not None
            for each in _containers(pod)
        ):
            resize = self._resizes.setdefault(pod.uid, _Resize())
            resize.in_progress = resize.in_progress or condition(pod, _IN_PROGRESS, True)
        elif resize is not None and (done := resize.in_progress) is not None:
            resize.in_progress = None
            generation = done.get("observedGeneration")
            self._event(pod, "ResizeCompleted", "Pod resize completed", generation=generation)

    def fail(self, pod: NodePod, message: str) -> None:
        """The runtime could not make the resize; it is tried again."""
        resize = self._resizes.setdefault(pod.uid, _Resize())
        failed = condition(pod, _IN_PROGRESS, True, "Error", message)
        if resize.in_progress is not None:
            failed["observedGeneration"] = resize.in_progress.get("observedGeneration")
        if failed != resize.in_progress:
            resize.in_progress = failed
            generation = failed.get("observedGeneration")
            self._event(
                pod, "ResizeError", "Pod resize error", generation=generation, error=message, is_warning=True
            )

    def release(self, uid: str) -> None:
        """Its containers have ended."""
        self.admitter.release(uid)
        self.retry()

    def keep_only(self, is_wanted: Callable[[str], bool]) -> None:
        self.admitter.keep_only(is_wanted)
        for uid in [each for each in self._resizes if not is_wanted(each)]:
            del self._resizes[uid]
            self._retries.forget(uid)

    def _event(
        self,
        pod: NodePod,
        reason: str,
        text: str,
        *,
        generation: int | None = None,
        error: str = "",
        is_warning: bool = False,
    ) -> None:
        summary: Object = {
            key: [{"name": each["name"], "resources": _sorted(each.get("resources"))} for each in containers]
            for key, containers in (
                ("initContainers", init_containers_of(pod)),
                ("containers", containers_of(pod)),
            )
            if containers
        }
        summary["generation"] = generation or pod["metadata"].get("generation") or 0
        if error:
            summary["error"] = error
        message = json.dumps(summary, separators=(",", ":"), ensure_ascii=False)
        self._events.pod(pod, reason, f"{text}: {message}", is_warning=is_warning)


def _sorted(resources: Mapping[str, Any] | None) -> Object:
    """As Go encodes it."""
    found = resources or {}
    return {side: dict(sorted(found[side].items())) for side in ("limits", "requests") if found.get(side)}


def _untimed(found: Mapping[str, Any] | None) -> Object | None:
    times = ("lastTransitionTime", "lastProbeTime")
    return None if found is None else {key: each for key, each in found.items() if key not in times}


def _identity(of: Object) -> tuple[Any, Any]:
    return of.get("reason"), of.get("observedGeneration")
