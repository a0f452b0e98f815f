"""Compares the pods of the node with the workers' state and the runtime, and corrects differences.

A pass is upstream's HandlePodCleanups (the HC- rules): workers forget or terminate unwanted pods, wanted pods unknown
to the workers are created, pods known only from the runtime are killed, and mirrors without a static pod are deleted. A
pass runs only when something may have been left behind, at most every two seconds, and every five minutes in case
something was missed. A failed pass is repeated.

Guarantees:
- Nothing is killed or removed before every source of pods is complete: until then an unknown pod may be wanted.
- Pods are created and killed only based on a runtime list made for that pass, never on older observations.

`container_gc` removes what ended pods leave behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from podlife.errors import PodlifeError
from podlife.kubelet.constants import HOUSEKEEPING_SECONDS
from podlife.kubelet.interfaces import Probes
from podlife.kubelet.kuberuntime import ContainerGC
from podlife.kubelet.pleg import GenericPLEG
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.pod_fields import is_static
from podlife.kubelet.pod_syncer import MirrorClient
from podlife.kubelet.podworkers import KillOptions, PodUpdate, PodWorkers, Stage, UpdateType, full_name
from podlife.kubelet.status import StatusGenerator
from podlife.kubelet.sync_loop import SyncLoop

log = logging.getLogger(__name__)

T = TypeVar("T")

_FULL_PASS_SECONDS = 300.0
_ORPHAN_GRACE_SECONDS = 1


@dataclass(slots=True)
class CleanupCounts:
    orphaned_runtime_pods: int = 0
    # By value of the label `static`: "" or "true".
    restarted_pods: dict[str, int] = field(default_factory=lambda: {"": 0, "true": 0})


@dataclass(frozen=True, slots=True)
class PodDifference:
    # Wanted, but unknown to the workers.
    missing: list[NodePod]
    # In a terminal phase or rejected, unknown to the workers, but not finished.
    to_terminate: list[NodePod]
    # UIDs known only from the runtime.
    unknown: list[str]
    # Mirrors whose static pod is gone.
    mirrors: list[NodePod]

    def __bool__(self) -> bool:
        return bool(self.missing or self.to_terminate or self.unknown or self.mirrors)


class PodCleanups:
    def __init__(
        self,
        sync_loop: SyncLoop,
        workers: PodWorkers,
        pleg: GenericPLEG,
        status: StatusGenerator,
        prober: Probes,
        mirrors: MirrorClient,
        gc: ContainerGC,
    ) -> None:
        self.counts = CleanupCounts()
        self._sync_loop = sync_loop
        self._pods = sync_loop.pods
        self._workers = workers
        self._pleg = pleg
        self._cache = pleg.cache
        self._status = status
        self._prober = prober
        self._mirrors = mirrors
        self._gc = gc
        self._queue = sync_loop.cleanups
        self._logged_error = ""

    def active_pods(self) -> list[NodePod]:
        """Wanted pods with containers that run or may run (HC-17): neither ended nor rejected."""
        return [
            pod
            for pod in self._pods
            if not self._workers.is_known_terminated(pod.uid)
            and (not self._status.is_over(pod) or self._workers.is_termination_requested(pod.uid))
        ]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._gc.run(), name="container GC")
            while True:
                await self._queue.wait(seconds=_FULL_PASS_SECONDS)
                if self._sync_loop.is_complete:
                    await self._try_clean_up()
                # Collect further changes, so that one pass handles them all.
                await asyncio.sleep(HOUSEKEEPING_SECONDS)

    async def _try_clean_up(self) -> None:
        try:
            await self.clean_up()
        except Exception as error:  # noqa: BLE001 - a failed cleanup must not stop the kubelet
            why = str(error) if isinstance(error, PodlifeError) else repr(error)
            if why != self._logged_error:
                log.warning("pod cleanup failed, retrying every %g s: %s", HOUSEKEEPING_SECONDS, why)
            self._logged_error = why
            self._queue.retry()
        else:
            self._logged_error = ""

    async def clean_up(self) -> None:
        """One pass. Raises if the runtime cannot be listed and something depends on it (HC-18)."""
        self._review_workers()
        difference = self._difference()
        if difference:
            await self._pleg.relist()
            # The relist may have changed the difference, and pods may have arrived meanwhile.
            difference = self._difference()
        self._forget()
        self._start_next_static_pods()
        _for_each(difference.missing, self._restart)
        _for_each(difference.to_terminate, lambda pod: self._update(UpdateType.KILL, pod))
        _for_each(difference.unknown, self._kill_unknown)
        self._queue_for_gc()
        for mirror in difference.mirrors:
            # Its static pod may have returned during earlier deletes. Each delete is retried until it succeeds.
            if self._is_orphan(mirror) and not await self._mirrors.delete(full_name(mirror), mirror.uid):
                self._queue.retry()

    def _review_workers(self) -> None:
        """A static pod that returns with the same UID starts again: its last status does not apply."""
        put_back = [
            pod.uid
            for pod in self._pods
            if is_static(pod)
            and (state := self._workers.state(pod.uid)) is not None
            and state.is_finished
            and state.is_restart_requested
        ]
        self._workers.sync_known_pods(self._pods)
        for uid in put_back:
            self._status.manager.forget(uid)

    def _difference(self) -> PodDifference:
        unknown = [pod for pod in self._pods if self._workers.state(pod.uid) is None]
        terminal = {pod.uid for pod in unknown if self._status.is_over(pod)}
        return PodDifference(
            missing=[pod for pod in unknown if pod.uid not in terminal],
            to_terminate=[pod for pod in unknown if pod.uid in terminal and self._needs_termination(pod)],
            unknown=[uid for uid in self._cache if self._is_only_in_runtime(uid)],
            mirrors=[each for each in self._pods.mirrors() if self._is_orphan(each)],
        )

    def _needs_termination(self, pod: NodePod) -> bool:
        """Its final delete must still be sent (HC-15), or it was rejected and an earlier kubelet's containers run."""
        is_deleted = pod.metadata.deletion_timestamp is not None
        return is_deleted or not self._cache.last_seen(pod.uid).is_stopped

    def _is_only_in_runtime(self, uid: str) -> bool:
        return (
            uid not in self._pods
            and self._workers.state(uid) is None
            and not self._cache.last_seen(uid).is_stopped
        )

    def _is_orphan(self, mirror: NodePod) -> bool:
        """Its static pod is gone, and none of that pod's containers runs (HC-16, PW-178)."""
        return self._pods.static_of(mirror) is None and not self._workers.is_static_pod_terminating(
            full_name(mirror)
        )

    def _forget(self) -> None:
        states = {uid: self._workers.state(uid) for uid in self._workers}
        self._sync_loop.allocation.keep_only(lambda uid: uid in self._pods or uid in states)
        self._status.manager.forget_all_but({each.uid for each in self._pods})
        self._prober.keep_only(
            {uid for uid, state in states.items() if state and state.stage is not Stage.TERMINATED}
        )

    def _restart(self, pod: NodePod) -> None:
        if self._sync_loop.add(pod):
            log.info("pod %s/%s is wanted and was unknown to the workers, started", *pod.key)
            self.counts.restarted_pods["true" if is_static(pod) else ""] += 1

    def _kill_unknown(self, uid: str) -> None:
        sandbox = next(iter(self._cache.last_seen(uid).sandboxes), None)
        name, namespace = ("", "") if sandbox is None else (sandbox.config.name, sandbox.config.namespace)
        log.info("pod %s/%s (%s) runs and is not wanted, ending it", namespace, name, uid)
        self.counts.orphaned_runtime_pods += 1
        kill = KillOptions(grace_seconds=_ORPHAN_GRACE_SECONDS)
        running = RunningPod(uid, namespace, name)
        self._workers.update_pod(PodUpdate(UpdateType.KILL, running=running, kill=kill))

    def _start_next_static_pods(self) -> None:
        """Start a static pod as soon as the previous pod of its name has ended, not only at its next retry."""
        workers = self._workers
        for pod in self._pods:
            if (
                is_static(pod)
                and workers.static_names.holder(full_name(pod)) is None
                and workers.state(pod.uid) is not None
                and not workers.is_termination_requested(pod.uid)
            ):
                self._update(UpdateType.SYNC, pod)

    def _queue_for_gc(self) -> None:
        """Pass queued UIDs to the container GC; not before the workers were reviewed."""
        uids, is_full_pass = self._queue.take()
        if is_full_pass:
            self._gc.add_all()
        self._gc.add(uids)

    def _update(self, type_: UpdateType, pod: NodePod) -> None:
        self._workers.update_pod(PodUpdate(type_, pod, mirror=self._pods.mirror_of(pod)))


def _for_each(subjects: Iterable[T], act: Callable[[T], None]) -> None:
    """An error with one pod must not prevent the handling of others."""
    for each in subjects:
        try:
            act(each)
        except Exception:
            log.exception("cleanup of pod %s failed", each.uid if isinstance(each, NodePod) else each)
