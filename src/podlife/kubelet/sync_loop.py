"""Turns what happens into updates of the pod workers: pods added and removed, PLEG events, probe results, timers.

All of it runs on one task or in callbacks on the same event loop, and nothing here waits: the workers take every update
at once. A change of a pod's status alone is usually the kubelet's own, and no reason to sync the pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ParamSpec

from podlife.kubelet.admission import AdmissionFailure, Admitter, rejected_status
from podlife.kubelet.cleanup_queue import CleanupQueue
from podlife.kubelet.config.pod_source import PodSource
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.pleg import PodLifecycleEvent, PodLifecycleEventType
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import condition_of, is_mirror, is_terminal_phase
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.podworkers import PodUpdate, PodWorkers, UpdateType
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.status import StatusManager

log = logging.getLogger(__name__)

Q = ParamSpec("Q")

# What of a pod's metadata says how it is to be run.
_METADATA = ("labels", "annotations", "deletionTimestamp", "deletionGracePeriodSeconds")


class SyncLoop:
    def __init__(
        self,
        pods: PodManager,
        workers: PodWorkers,
        status: StatusManager,
        events: PodEvents,
        *,
        admitter: Admitter,
        deadlines: DueQueue,
        cleanups: CleanupQueue,
    ) -> None:
        self.wakeup = asyncio.Event()
        self.api_pods = PodSource(self.wakeup)
        self.static_pods = PodSource(self.wakeup)
        # All pods that the node should have are known: what is not among them is not wanted. Only once they were taken:
        # between the last word of a source and that, a look at what runs would take every pod for an orphan.
        self.is_complete = False
        self.pods = pods
        self.admitter = admitter
        self._workers = workers
        self._status = status
        self._events = events
        # When pods will have been active for longer than they may.
        self._deadlines = deadlines
        self.cleanups = cleanups

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._take_pods(), name="pod sources")
            for queue in (self._workers.retries, self._deadlines):
                group.create_task(self._sync_due_pods(queue), name="due pods")

    async def _take_pods(self) -> None:
        while True:
            await self.wakeup.wait()
            self.wakeup.clear()
            # Those of the node itself come first: they may be what the others need.
            sources = (self.static_pods, self.api_pods)
            has_all = all(each.is_complete for each in sources)
            for source in sources:
                removed, put = source.take()
                for uid in removed:
                    _handle(uid, self._take_removal, uid, source.last_state(uid), has_all)
                for pod in put:
                    _handle(pod.uid, self._take, pod)
            if has_all and not self.is_complete:
                self.is_complete = True
                self.cleanups.add_all()

    async def _sync_due_pods(self, queue: DueQueue) -> None:
        while True:
            for uid in await queue.wait():
                _handle(uid, self.sync, uid)

    # Pods that are wanted

    def _take(self, pod: NodePod) -> None:
        old = self.pods.pod(pod.uid)
        if is_mirror(pod):
            self._take_mirror(pod)
        elif old is None:
            self.add(pod)
        else:
            self.pods.put(pod)
            if _is_to_be_looked_at(old, pod):
                self._update_if_admitted(UpdateType.UPDATE, pod)

    def _take_mirror(self, mirror: NodePod) -> None:
        self.pods.put(mirror)
        static = self.pods.static_of(mirror)
        if static is None:
            self.cleanups.add_all()
        else:
            self._status.note_mirror(static.uid)
            self._update_if_admitted(UpdateType.UPDATE, static)

    def add(self, pod: NodePod) -> bool:
        """Create a pod if there is room for it; says whether it was admitted. One that has ended, or is to, is not
        asked (ST-19), but keeps its place as long as something of it runs (HC-17)."""
        self.pods.put(pod)
        uid = pod.uid
        is_ending = self._workers.is_termination_requested(uid) or is_terminal_phase(pod.status.phase)
        refused = None if is_ending else self._admission(pod)
        if refused is not None:
            self._events.pod(pod, refused.reason, refused.message, is_warning=True)
            self._status.set_status(pod, rejected_status(refused))
            # A kubelet before may have started it.
            self.cleanups.add(uid)
            return False
        self._update(UpdateType.CREATE, pod)
        if is_ending and self._workers.could_have_running_containers(uid):
            self.admitter.take(pod)
        return True

    def _admission(self, pod: NodePod) -> AdmissionFailure | None:
        try:
            return self.admitter.admit(pod)
        except Exception as error:
            # What cannot be judged is refused, in upstream's words; the other pods are admitted all the same.
            log.exception("admission of pod %s/%s failed", *pod.key)
            return AdmissionFailure(
                "UnexpectedAdmissionError", f"unexpected error during admission: {error!r}"
            )

    def _take_removal(self, uid: str, last: NodePod | None, has_all: bool) -> None:
        """While a source is not ready nothing is ended: housekeeping does that when all are (HC-19)."""
        pod = self.pods.remove(uid)
        if pod is None:
            return
        if last is not None:
            # Who forces a pod away takes its grace away with it, and both are seen at once.
            pod = last
        if is_mirror(pod):
            static = self.pods.static_of(pod)
            if static is not None:
                self._update_if_admitted(UpdateType.UPDATE, static)
            return
        if has_all and self._workers.state(uid) is not None:
            self._update(UpdateType.KILL, pod)
        self._deadlines.forget(uid)
        self.cleanups.add(uid)

    # What happens to them

    def sync(self, uid: str) -> None:
        """Look at this pod again, if it is still wanted and was admitted."""
        pod = self.pods.pod(uid)
        if pod is not None:
            self._update_if_admitted(UpdateType.SYNC, pod)

    def take_events(self, uid: str, events: tuple[PodLifecycleEvent, ...]) -> None:
        """PL-13: an event that concerns the pod syncs it; one of an ended or unknown pod leads to a cleanup."""
        if not events or any(each.kind.is_sync_due for each in events):
            self.sync(uid)
        if uid not in self.pods or any(each.kind is not PodLifecycleEventType.STARTED for each in events):
            self.cleanups.add(uid)

    def take_probe_result(self, uid: str, container_id: str, type_: ProbeType, result: ProbeResult) -> None:
        is_success = result is ProbeResult.SUCCESS
        if type_ is ProbeType.READINESS:
            self._status.set_readiness(uid, container_id, is_success)
        elif type_ is ProbeType.STARTUP:
            self._status.set_started(uid, container_id, is_success)
        elif result is not ProbeResult.FAILURE:
            return
        self.sync(uid)

    def _update_if_admitted(self, type_: UpdateType, pod: NodePod) -> None:
        """A refused pod has no worker: neither its status nor its mirror gives it one, only its deletion."""
        if self._workers.state(pod.uid) is not None or pod.metadata.deletion_timestamp is not None:
            self._update(type_, pod)

    def _update(self, type_: UpdateType, pod: NodePod) -> None:
        asked_at = asyncio.get_running_loop().time()
        mirror = self.pods.mirror_of(pod)
        self._workers.update_pod(PodUpdate(type_, pod, mirror=mirror, asked_at=asked_at))


def _handle(uid: str, handler: Callable[Q, object], *arguments: Q.args, **options: Q.kwargs) -> None:
    """What goes wrong with one pod must not end the kubelet of the others."""
    try:
        handler(*arguments, **options)
    except Exception:
        log.exception("update of pod %s failed", uid)


def _is_to_be_looked_at(old: NodePod, new: NodePod) -> bool:
    """What it should be has changed, or somebody else has said that it ended, or that it is ready."""
    if _wanted(old) != _wanted(new):
        return True
    if is_terminal_phase(new.status.phase) and not is_terminal_phase(old.status.phase):
        return True
    gates = [each["conditionType"] for each in new["spec"].get("readinessGates") or ()]
    return any(_condition(old, each) != _condition(new, each) for each in gates)


def _wanted(pod: NodePod) -> tuple[Any, ...]:
    metadata = pod["metadata"]
    return pod.get("spec"), *(metadata.get(each) for each in _METADATA)


def _condition(pod: NodePod, type_: str) -> Any:
    found = condition_of(pod.get("status") or {}, type_)
    return None if found is None else found.get("status")
