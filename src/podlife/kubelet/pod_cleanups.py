"""Compares the pods of the node with what the workers know and the runtime runs, and corrects the difference.

A pass is upstream's HandlePodCleanups (the HC- rules): workers forget or end what is not wanted, pods that are wanted
and unknown to the workers are created, what only the runtime knows is ended, mirrors without a static pod are deleted.
Cost follows change: a pass runs when something may have been left behind, at most every two seconds, and every five
minutes in case something was missed. A failed pass is repeated, so an idle kubelet does nothing.

Guarantees:
- Nothing is ended or removed before every source of pods is ready: until then what is unknown may still be wanted.
- Pods are created and ended only by a list of the runtime made for that pass, never by what was seen before.

Removing what ended pods leave behind is left to `container_gc`.
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
    # By the label `static`: "" or "true".
    restarted_pods: dict[str, int] = field(default_factory=lambda: {"": 0, "true": 0})


@dataclass(frozen=True, slots=True)
class PodDifference:
    # Wanted, and unknown to the workers.
    missing: list[NodePod]
    # Ended or refused, unknown to the workers, and with something left to do.
    to_end: list[NodePod]
    # UIDs that only the runtime knows.
    unknown: list[str]
    # Mirrors of static pods that are gone.
    mirrors: list[NodePod]

    def __bool__(self) -> bool:
        return bool(self.missing or self.to_end or self.unknown or self.mirrors)


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
        self._complaint = ""

    def active_pods(self) -> list[NodePod]:
        """Wanted pods of which something runs, or may (HC-17): not those that ended, nor those that were refused."""
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
                    await self._clean_up_if_possible()
                # What comes meanwhile waits: one pass may see to all of it.
                await asyncio.sleep(HOUSEKEEPING_SECONDS)

    async def _clean_up_if_possible(self) -> None:
        try:
            await self.clean_up()
        except Exception as error:  # noqa: BLE001 - an untidy node is better than none
            why = str(error) if isinstance(error, PodlifeError) else repr(error)
            if why != self._complaint:
                log.warning("pod cleanup failed, retrying every %g s: %s", HOUSEKEEPING_SECONDS, why)
            self._complaint = why
            self._queue.retry()
        else:
            self._complaint = ""

    async def clean_up(self) -> None:
        """One pass. Raises why the runtime could not be listed, if something depends on it (HC-18)."""
        self._review_workers()
        difference = self._difference()
        if difference:
            await self._pleg.relist()
            # The list may have changed it, and pods may have come while it was made.
            difference = self._difference()
        self._forget()
        self._start_next_static_pods()
        _for_each(difference.missing, self._restart)
        _for_each(difference.to_end, lambda pod: self._update(UpdateType.KILL, pod))
        _for_each(difference.unknown, self._end_unknown)
        self._hand_over()
        for mirror in difference.mirrors:
            # Its static pod may have come back while others were deleted. Each is retried until it is gone.
            if self._is_orphan(mirror) and not await self._mirrors.delete(full_name(mirror), mirror.uid):
                self._queue.retry()

    def _review_workers(self) -> None:
        """A static pod that was put back under its UID begins again: how it ended before does not count for it."""
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
        over = {pod.uid for pod in unknown if self._status.is_over(pod)}
        return PodDifference(
            missing=[pod for pod in unknown if pod.uid not in over],
            to_end=[pod for pod in unknown if pod.uid in over and self._has_to_end(pod)],
            unknown=[uid for uid in self._cache if self._is_only_in_runtime(uid)],
            mirrors=[each for each in self._pods.mirrors() if self._is_orphan(each)],
        )

    def _has_to_end(self, pod: NodePod) -> bool:
        """Its final delete is still to be sent (HC-15), or it was refused and an earlier kubelet's containers run."""
        is_deleted = pod.metadata.deletion_timestamp is not None
        return is_deleted or not self._cache.last_seen(pod.uid).is_stopped

    def _is_only_in_runtime(self, uid: str) -> bool:
        return (
            uid not in self._pods
            and self._workers.state(uid) is None
            and not self._cache.last_seen(uid).is_stopped
        )

    def _is_orphan(self, mirror: NodePod) -> bool:
        """Its static pod is gone, and nothing of that runs any more (HC-16, PW-178)."""
        return self._pods.static_of(mirror) is None and not self._workers.is_static_pod_terminating(
            full_name(mirror)
        )

    def _forget(self) -> None:
        states = {uid: self._workers.state(uid) for uid in self._workers}
        self._sync_loop.admitter.keep_only(lambda uid: uid in self._pods or uid in states)
        self._status.manager.forget_all_but({each.uid for each in self._pods})
        self._prober.keep_only(
            {uid for uid, state in states.items() if state and state.stage is not Stage.TERMINATED}
        )

    def _restart(self, pod: NodePod) -> None:
        if self._sync_loop.add(pod):
            log.info("pod %s/%s is wanted and was unknown to the workers, started", *pod.key)
            self.counts.restarted_pods["true" if is_static(pod) else ""] += 1

    def _end_unknown(self, uid: str) -> None:
        sandbox = next(iter(self._cache.last_seen(uid).sandboxes), None)
        name, namespace = ("", "") if sandbox is None else (sandbox.config.name, sandbox.config.namespace)
        log.info("pod %s/%s (%s) runs and is not wanted, ending it", namespace, name, uid)
        self.counts.orphaned_runtime_pods += 1
        kill = KillOptions(grace_seconds=_ORPHAN_GRACE_SECONDS)
        running = RunningPod(uid, namespace, name)
        self._workers.update_pod(PodUpdate(UpdateType.KILL, running=running, kill=kill))

    def _start_next_static_pods(self) -> None:
        """A static pod that waited for another of its name starts when that has ended, not only at its own retry."""
        workers = self._workers
        for pod in self._pods:
            if (
                is_static(pod)
                and workers.static_names.holder(full_name(pod)) is None
                and workers.state(pod.uid) is not None
                and not workers.is_termination_requested(pod.uid)
            ):
                self._update(UpdateType.SYNC, pod)

    def _hand_over(self) -> None:
        """Pass what was queued on to the container GC; not before the workers were reviewed."""
        uids, is_full_pass = self._queue.take()
        if is_full_pass:
            self._gc.add_all()
        self._gc.add(uids)

    def _update(self, type_: UpdateType, pod: NodePod) -> None:
        self._workers.update_pod(PodUpdate(type_, pod, mirror=self._pods.mirror_of(pod)))


def _for_each(subjects: Iterable[T], act: Callable[[T], None]) -> None:
    """A failure with one pod must not keep the others from being handled."""
    for each in subjects:
        try:
            act(each)
        except Exception:
            log.exception("cleanup of pod %s failed", each.uid if isinstance(each, NodePod) else each)
