"""The steps of a pod that the workers take: sync, terminating, terminated (ST-01 to ST-17).

A step that is cancelled lets the call to the runtime that is under way come to its end and goes no further; what is
still to be done the next step finds out by looking. So a pod that is to end sooner does (a kubelet's kill, once begun,
does not hear of it, ST-14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from podlife.api.codec import Object
from podlife.clock import Clock
from podlife.kubelet.admission.predicates import AdmissionFailure, rejected_status
from podlife.kubelet.interfaces import (
    ObjectCache,
    Probes,
    VolumeError,
    VolumeLimitError,
    Volumes,
)
from podlife.kubelet.kuberuntime.compute_pod_actions import compute_pod_actions
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller
from podlife.kubelet.kuberuntime.start_container import ContainerStartError
from podlife.kubelet.kuberuntime.sync_pod import KubeRuntimeManager
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg.pod_cache import PodCache
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Pod, is_static, is_terminal_phase
from podlife.kubelet.podworkers import BackoffError, StatusOverride, SyncResult, UpdateType
from podlife.kubelet.runtime import ContainerRuntimeError, HasNetwork, Runtime, RuntimeUnavailableError
from podlife.kubelet.status.generate import StatusGenerator, is_restart_under_way
from podlife.kubelet.status.manager import StatusManager

__all__ = ["MirrorClient", "Parts", "PodSyncer"]

log = logging.getLogger(__name__)

# What a pod that nobody knows any more has to end in (ST-15).
_ORPHAN_GRACE_SECONDS = 1


class MirrorClient(Protocol):
    """Shows static pods to the API server. Neither raises what is wrong with the server."""

    async def ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        """See that the static pod has its mirror; `mirror` is the one that is known of."""
        ...

    async def delete(self, full_name: str, uid: str) -> bool:
        """Delete the mirror of this full name and UID."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the steps work with. `look_again` is told of a pod for which something was done, `due_at` of one that is
    to be looked at by then, `stopped` of one of which nothing runs any more, `ended` of one that left something."""

    runtime: Runtime
    cache: PodCache
    manager: StatusManager
    statuses: StatusGenerator
    syncer: KubeRuntimeManager
    killer: ContainerKiller
    probes: Probes
    volumes: Volumes
    references: ObjectCache
    mirrors: MirrorClient
    telling: PodEvents
    clock: Clock
    seconds: Callable[[], float]
    look_again: Callable[[str], None]
    due_at: Callable[[str, float], None]
    stopped: Callable[[str], None]
    ended: Callable[[str], None]


class PodSyncer:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult:
        parts, observed = self._parts, status
        told = parts.statuses.make(pod, observed)
        parts.statuses.tell(pod, told)
        if is_terminal_phase(told["phase"]):
            return SyncResult(is_terminal=True)
        self._note_deadline(pod)
        self._check_network(pod)
        parts.references.register(pod)
        if is_static(pod):
            await parts.mirrors.ensure(pod, mirror)
        if not await self._is_mounted(pod):
            return SyncResult(is_terminal=True)
        parts.probes.add(pod)
        is_restarting = is_restart_under_way(pod, told, observed)
        actions = compute_pod_actions(pod, observed, parts.probes.verdict, is_restarting_all=is_restarting)
        done = await parts.syncer.sync(pod, observed, actions)
        if done.failures:
            await self._tell_failures(pod)
            self._raise(done.failures)
        return SyncResult(after=(lambda: parts.look_again(pod.uid)) if done.has_acted else None)

    async def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: StatusOverride | None
    ) -> None:
        parts = self._parts
        told = parts.statuses.make(pod, status)
        if override is not None:
            override(told)
        parts.statuses.tell(pod, told)
        parts.probes.stop_for_termination(pod)
        try:
            await parts.killer.kill_pod(pod, status, grace_seconds=grace_seconds)
        except ContainerRuntimeError as error:
            parts.telling.pod(pod, "FailedKillPod", f"error killing pod: {error}", is_warning=True)
            raise
        parts.probes.remove(pod.uid)
        ended = await self._look(pod.uid)
        if running := [each.id for each in ended.containers if each.is_running]:
            raise ContainerRuntimeError(
                f"detected running containers after a successful KillPod, CRI violation: {', '.join(running)}"
            )
        parts.statuses.tell(pod, parts.statuses.make(pod, ended, is_terminal=True))

    async def sync_terminating_runtime_pod(self, running: RunningPod) -> None:
        parts = self._parts
        observed = await self._look(running.uid)
        try:
            await parts.killer.kill_pod(None, observed, grace_seconds=_ORPHAN_GRACE_SECONDS)
        except ContainerRuntimeError as error:
            log.warning("a pod that nobody knows, %s, could not be ended: %s", running.uid, error)
            raise
        parts.ended(running.uid)

    async def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> None:
        parts = self._parts
        parts.stopped(pod.uid)
        parts.statuses.tell(pod, parts.statuses.make(pod, status, is_terminal=True))
        await parts.volumes.unmount(pod.uid)
        parts.references.unregister(pod.uid)
        parts.manager.terminate(pod)
        parts.ended(pod.uid)

    # The parts of a sync

    def _note_deadline(self, pod: NodePod) -> None:
        deadline = self._parts.statuses.deadline(pod)
        if deadline is not None:
            left = (deadline - self._parts.clock.now()).total_seconds()
            self._parts.due_at(pod.uid, self._parts.seconds() + max(left, 0.0))

    def _check_network(self, pod: NodePod) -> None:
        """ST-02."""
        runtime = self._parts.runtime
        problem = runtime.network_problem if isinstance(runtime, HasNetwork) else ""
        if problem and not pod["spec"].get("hostNetwork"):
            said = f"network is not ready: {problem}"
            self._parts.telling.pod(pod, "NetworkNotReady", said, is_warning=True)
            raise RuntimeUnavailableError(said)

    async def _is_mounted(self, pod: NodePod) -> bool:
        """False for a pod that was refused for its volumes (ST-04)."""
        try:
            await self._parts.volumes.mount(pod)
        except VolumeLimitError as error:
            refused = AdmissionFailure("VolumeAttachmentLimitExceeded", str(error))
            self._parts.telling.pod(pod, refused.reason, refused.message, is_warning=True)
            self._parts.statuses.tell(pod, rejected_status(refused))
            return False
        except VolumeError as error:
            self._parts.telling.pod(pod, "FailedMount", str(error), is_warning=True)
            raise
        return True

    async def _tell_failures(self, pod: NodePod) -> None:
        """Why containers wait is told at once, not with the next look at the pod."""
        observed = await self._look(pod.uid)
        self._parts.statuses.tell(pod, self._parts.statuses.make(pod, observed))

    async def _look(self, uid: str) -> ObservedPod:
        return await self._parts.cache.read_newer_than(uid, self._parts.seconds())

    def _raise(self, failures: list[ContainerStartError]) -> None:
        """As errors that say when to try again, where they know (RB-04)."""
        now, seconds = self._parts.clock.now(), self._parts.seconds()
        errors: list[Exception] = [
            each
            if each.until is None
            else BackoffError(str(each), seconds + (each.until - now).total_seconds())
            for each in failures
        ]
        if len(errors) == 1:
            raise errors[0]
        raise ExceptionGroup("containers did not start", errors)
