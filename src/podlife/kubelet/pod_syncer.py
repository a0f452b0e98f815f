"""The steps of a pod that the pod workers run: sync, terminating, terminated (ST-01 to ST-17).

A cancelled step completes the runtime call in flight and stops there; the next step observes the pod again and does the
rest. So a shortened grace period also shortens a kill in progress, unlike upstream (ST-14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from podlife.api.codec import Object
from podlife.clock import Clock
from podlife.kubelet.admission import AdmissionFailure, rejected_status
from podlife.kubelet.allocation import AllocationManager
from podlife.kubelet.cleanup_queue import CleanupQueue
from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import ObjectCache, Probes, VolumeError, VolumeLimitError, Volumes
from podlife.kubelet.kuberuntime import ContainerStartError, KubeRuntimeManager
from podlife.kubelet.kuberuntime.compute_pod_actions import compute_pod_actions
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg import GenericPLEG
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Pod, is_static, is_terminal_phase
from podlife.kubelet.podworkers import BackoffError, StatusOverride, SyncResult, UpdateType
from podlife.kubelet.runtime import ContainerRuntimeError, RuntimeUnavailableError
from podlife.kubelet.status import StatusGenerator, is_restart_under_way

log = logging.getLogger(__name__)

# Grace period of a pod known only from the runtime (ST-15).
_ORPHAN_GRACE_SECONDS = 1


class MirrorClient(Protocol):
    """Mirrors static pods at the API server. Neither method raises the client's errors."""

    async def ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        """Ensure that the static pod has a mirror; `mirror` is the known one."""

    async def delete(self, full_name: str, uid: str) -> bool: ...


@dataclass(eq=False)
class PodSyncer:
    kuberuntime: KubeRuntimeManager
    status: StatusGenerator
    volumes: Volumes
    prober: Probes
    pleg: GenericPLEG
    objects: ObjectCache
    mirrors: MirrorClient
    events: PodEvents
    allocation: AllocationManager
    deadlines: DueQueue
    cleanups: CleanupQueue
    clock: Clock
    context: Callable[[], DownwardContext]

    async def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult:
        observed = status
        pod = self.allocation.allocated(pod)
        self.allocation.observe(pod, observed)
        generated = self.status.generate(pod, observed)
        self.status.report(pod, generated)
        if is_terminal_phase(generated["phase"]):
            return SyncResult(is_terminal=True)
        self._note_deadline(pod)
        self._check_network(pod)
        self.objects.register(pod)
        if is_static(pod):
            await self.mirrors.ensure(pod, mirror)
        if not await self._is_mounted(pod):
            return SyncResult(is_terminal=True)
        self.prober.add(pod)
        is_restarting = is_restart_under_way(pod, generated, observed)
        actions = compute_pod_actions(pod, observed, self.prober.result, is_restarting_all=is_restarting)
        result = await self.kuberuntime.sync_pod(pod, observed, actions, self.context())
        failures: list[ContainerRuntimeError] = [*result.failures]
        if result.resize_failure is not None:
            self.allocation.fail(pod, str(result.resize_failure))
            failures.append(result.resize_failure)
        if failures:
            # Report waiting reasons now, not with the next sync.
            self.status.report(pod, self.status.generate(pod, await self.pleg.observe(pod.uid)))
            self._raise(failures)
        if result.has_resized:
            return SyncResult(after=lambda: self.pleg.reinspect(pod.uid))
        return SyncResult(after=(lambda: self.pleg.request_reinspect(pod.uid)) if result.has_acted else None)

    async def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: StatusOverride | None
    ) -> None:
        pod = self.allocation.allocated(pod)
        generated = self.status.generate(pod, status)
        if override is not None:
            override(generated)
        self.status.report(pod, generated)
        self.prober.stop_for_termination(pod)
        try:
            await self.kuberuntime.kill_pod(pod, status, grace_seconds=grace_seconds)
        except ContainerRuntimeError as error:
            self.events.pod(pod, "FailedKillPod", f"error killing pod: {error}", is_warning=True)
            raise
        self.prober.remove(pod.uid)
        ended = await self.pleg.observe(pod.uid)
        if running := [each.id for each in ended.containers if each.is_running]:
            raise ContainerRuntimeError(
                f"detected running containers after a successful KillPod, CRI violation: {', '.join(running)}"
            )
        self.status.report(pod, self.status.generate(pod, ended, is_terminal=True))

    async def sync_terminating_runtime_pod(self, running: RunningPod) -> None:
        observed = await self.pleg.observe(running.uid)
        try:
            await self.kuberuntime.kill_pod(None, observed, grace_seconds=_ORPHAN_GRACE_SECONDS)
        except ContainerRuntimeError as error:
            log.warning("orphaned pod %s could not be killed: %s", running.uid, error)
            raise
        self.cleanups.add(running.uid)

    async def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> None:
        pod = self.allocation.allocated(pod)
        self.allocation.release(pod.uid)
        self.status.report(pod, self.status.generate(pod, status, is_terminal=True))
        await self.volumes.unmount(pod.uid)
        self.objects.unregister(pod.uid)
        self.status.manager.terminate(pod)
        self.cleanups.add(pod.uid)

    # Parts of a sync

    def _note_deadline(self, pod: NodePod) -> None:
        deadline = self.status.deadline(pod)
        if deadline is not None:
            left = (deadline - self.clock.now()).total_seconds()
            # A deadline may be shortened while the pod runs.
            self.deadlines.put_earlier(pod.uid, self.pleg.seconds() + max(left, 0.0))

    def _check_network(self, pod: NodePod) -> None:
        """Without hostNetwork, a pod waits for the runtime's network (ST-02)."""
        problem = self.kuberuntime.network_problem
        if problem and not pod["spec"].get("hostNetwork"):
            message = f"network is not ready: {problem}"
            self.events.pod(pod, "NetworkNotReady", message, is_warning=True)
            raise RuntimeUnavailableError(message)

    async def _is_mounted(self, pod: NodePod) -> bool:
        """False if the pod was rejected because of its volumes (ST-04)."""
        try:
            await self.volumes.mount(pod)
        except VolumeLimitError as error:
            failure = AdmissionFailure("VolumeAttachmentLimitExceeded", str(error))
            self.events.pod(pod, failure.reason, failure.message, is_warning=True)
            self.status.report(pod, rejected_status(failure))
            return False
        except VolumeError as error:
            self.events.pod(pod, "FailedMount", str(error), is_warning=True)
            raise
        return True

    def _raise(self, failures: list[ContainerRuntimeError]) -> None:
        """Raise them, with the time of the next attempt if known (RB-04)."""
        now, seconds = self.clock.now(), self.pleg.seconds()
        errors: list[Exception] = [
            each
            if not isinstance(each, ContainerStartError) or each.until is None
            else BackoffError(str(each), seconds + (each.until - now).total_seconds())
            for each in failures
        ]
        if len(errors) == 1:
            raise errors[0]
        raise ExceptionGroup("containers were not started or resized", errors)
