"""Turns changes into updates of the pod workers: pods added and removed, PLEG events, probe results, timers.

Everything runs on one event loop, and nothing here waits: the workers accept every update at once. A change of a pod's
status alone is usually the kubelet's own and does not trigger a sync.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ParamSpec

from podlife.kubelet.admission import AdmissionFailure, rejected_status
from podlife.kubelet.allocation import AllocationManager, reported_allocation
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

# Metadata that affects how a pod is run.
_METADATA = ("labels", "annotations", "deletionTimestamp", "deletionGracePeriodSeconds")


class SyncLoop:
    def __init__(
        self,
        pods: PodManager,
        workers: PodWorkers,
        status: StatusManager,
        events: PodEvents,
        *,
        allocation: AllocationManager,
        deadlines: DueQueue,
        cleanups: CleanupQueue,
    ) -> None:
        self.wakeup = asyncio.Event()
        self.api_pods = PodSource(self.wakeup)
        self.static_pods = PodSource(self.wakeup)
        # All desired pods have been taken, so unknown pods are not wanted. Set only after taking them: earlier, a
        # cleanup would take every running pod for an orphan.
        self.is_complete = False
        self.pods = pods
        self.allocation = allocation
        self._workers = workers
        self._status = status
        self._events = events
        # When the active deadlines of pods expire.
        self._deadlines = deadlines
        self.cleanups = cleanups

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._handle_sources(), name="pod sources")
            group.create_task(self.allocation.run(), name="deferred resizes")
            for queue in (self._workers.retries, self._deadlines):
                group.create_task(self._sync_due_pods(queue), name="due pods")

    async def _handle_sources(self) -> None:
        while True:
            await self.wakeup.wait()
            self.wakeup.clear()
            # Static pods first: others may depend on them.
            sources = (self.static_pods, self.api_pods)
            has_all = all(each.is_complete for each in sources)
            for source in sources:
                removed, put = source.take()
                for uid in removed:
                    _call_safely(uid, self._handle_removal, uid, source.last_state(uid), has_all)
                for pod in put:
                    _call_safely(pod.uid, self._handle_pod, pod)
            if has_all and not self.is_complete:
                self.is_complete = self.allocation.is_enabled = True
                self.allocation.retry()
                self.cleanups.add_all()

    async def _sync_due_pods(self, queue: DueQueue) -> None:
        while True:
            for uid in await queue.wait():
                _call_safely(uid, self.sync, uid)

    # Desired pods

    def _handle_pod(self, pod: NodePod) -> None:
        old = self.pods.pod(pod.uid)
        if is_mirror(pod):
            self._handle_mirror(pod)
        elif old is None:
            self.add(pod)
        else:
            self.pods.put(pod)
            if _needs_sync(old, pod):
                self.allocation.update(pod)
                self._update_if_admitted(UpdateType.UPDATE, pod)

    def _handle_mirror(self, mirror: NodePod) -> None:
        self.pods.put(mirror)
        static = self.pods.static_of(mirror)
        if static is None:
            self.cleanups.add_all()
        else:
            self._status.note_mirror(static.uid)
            self._update_if_admitted(UpdateType.UPDATE, static)

    def add(self, pod: NodePod) -> bool:
        """Create a pod if the node admits it; returns whether it did. A terminated or terminating pod is not checked
        (ST-19), but occupies its resources while it runs (HC-17)."""
        self.pods.put(pod)
        uid = pod.uid
        is_ending = self._workers.is_termination_requested(uid) or is_terminal_phase(pod.status.phase)
        # To an earlier kubelet's pod, what that one allocated: a resize is for later.
        allocated = reported_allocation(pod)
        rejection = None if is_ending else self._admission(allocated)
        if rejection is not None:
            self._events.pod(pod, rejection.reason, rejection.message, is_warning=True)
            self._status.set_status(pod, rejected_status(rejection))
            # An earlier kubelet may have started it.
            self.cleanups.add(uid)
            return False
        self._update(UpdateType.CREATE, pod)
        if is_ending and self._workers.could_have_running_containers(uid):
            self.allocation.admitter.take(allocated)
        self.allocation.add(pod)
        return True

    def _admission(self, pod: NodePod) -> AdmissionFailure | None:
        try:
            return self.allocation.admitter.admit(pod)
        except Exception as error:
            # A pod that cannot be checked is rejected, with upstream's message; others are not affected.
            log.exception("admission of pod %s/%s failed", *pod.key)
            return AdmissionFailure(
                "UnexpectedAdmissionError", f"unexpected error during admission: {error!r}"
            )

    def _handle_removal(self, uid: str, last: NodePod | None, has_all: bool) -> None:
        """Until all sources are complete nothing is killed; cleanups do that later (HC-19)."""
        pod = self.pods.remove(uid)
        if pod is None:
            return
        if last is not None:
            # A forced deletion also sets the grace period to 0; both arrive in one event.
            pod = last
        if is_mirror(pod):
            static = self.pods.static_of(pod)
            if static is not None:
                self._update_if_admitted(UpdateType.UPDATE, static)
            return
        if has_all and self._workers.state(uid) is not None:
            self._update(UpdateType.KILL, pod)
        self.allocation.retry()
        self._deadlines.forget(uid)
        self.cleanups.add(uid)

    # Events

    def sync(self, uid: str) -> None:
        """Sync this pod, if it is still desired and was admitted."""
        pod = self.pods.pod(uid)
        if pod is not None:
            self._update_if_admitted(UpdateType.SYNC, pod)

    def handle_events(self, uid: str, events: tuple[PodLifecycleEvent, ...]) -> None:
        """Sync the pod if the event concerns it; a terminated or unknown pod is cleaned up (PL-13)."""
        if not events or any(each.kind.is_sync_due for each in events):
            self.sync(uid)
        if uid not in self.pods or any(each.kind is not PodLifecycleEventType.STARTED for each in events):
            self.cleanups.add(uid)

    def handle_probe_result(self, uid: str, container_id: str, type_: ProbeType, result: ProbeResult) -> None:
        is_success = result is ProbeResult.SUCCESS
        if type_ is ProbeType.READINESS:
            self._status.set_readiness(uid, container_id, is_success)
        elif type_ is ProbeType.STARTUP:
            self._status.set_started(uid, container_id, is_success)
        elif result is not ProbeResult.FAILURE:
            return
        self.sync(uid)

    def _update_if_admitted(self, type_: UpdateType, pod: NodePod) -> None:
        """A rejected pod has no worker: only its deletion creates one, not a change of its status or mirror."""
        if self._workers.state(pod.uid) is not None or pod.metadata.deletion_timestamp is not None:
            self._update(type_, pod)

    def _update(self, type_: UpdateType, pod: NodePod) -> None:
        asked_at = asyncio.get_running_loop().time()
        mirror = self.pods.mirror_of(pod)
        self._workers.update_pod(PodUpdate(type_, pod, mirror=mirror, asked_at=asked_at))


def _call_safely(uid: str, handler: Callable[Q, object], *arguments: Q.args, **options: Q.kwargs) -> None:
    """An error with one pod must not stop the kubelet."""
    try:
        handler(*arguments, **options)
    except Exception:
        log.exception("update of pod %s failed", uid)


def _needs_sync(old: NodePod, new: NodePod) -> bool:
    """The desired state has changed, or another component set a terminal phase or a readiness gate."""
    if _desired(old) != _desired(new):
        return True
    if is_terminal_phase(new.status.phase) and not is_terminal_phase(old.status.phase):
        return True
    gates = [each["conditionType"] for each in new["spec"].get("readinessGates") or ()]
    return any(_condition(old, each) != _condition(new, each) for each in gates)


def _desired(pod: NodePod) -> tuple[Any, ...]:
    metadata = pod["metadata"]
    return pod.get("spec"), *(metadata.get(each) for each in _METADATA)


def _condition(pod: NodePod, type_: str) -> Any:
    found = condition_of(pod.get("status") or {}, type_)
    return None if found is None else found.get("status")
