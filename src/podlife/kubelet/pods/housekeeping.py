"""What nobody wants any more is ended, forgotten and removed: workers, orphans, containers, logs, volumes.

Cost follows change: a pod that left something behind is looked at by itself, within two seconds; a look at everything
is made when the agent begins, when pods were removed, and every five minutes. Nothing is ended or removed before every
source of pods has told of all its pods: until then what is not known may still be wanted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podlife.aio import wait_until_set
from podlife.errors import PodlifeError
from podlife.kubelet.lifecycle.constants import HOUSEKEEPING_SECONDS
from podlife.kubelet.lifecycle.objects import is_static
from podlife.kubelet.lifecycle.observed import ObservedPod
from podlife.kubelet.pods.admitting import Admitter
from podlife.kubelet.pods.cache import PodCache
from podlife.kubelet.pods.killing import Killer
from podlife.kubelet.pods.known_pods import KnownPods
from podlife.kubelet.pods.logs_on_disk import LogFolders
from podlife.kubelet.pods.loop import Workers
from podlife.kubelet.pods.pod import NodePod, RunningPod
from podlife.kubelet.pods.statuses import Statuses
from podlife.kubelet.pods.steps import Mirrors
from podlife.kubelet.podworkers import KillOptions, PodUpdate, Stage, UpdateType, full_name
from podlife.kubelet.podworkers.ports import is_stopped
from podlife.kubelet.ports import Probes, Volumes
from podlife.kubelet.runtime import ContainerState, Runtime
from podlife.kubelet.status_manager import StatusManager

__all__ = ["Housekeeping", "Rooms"]

log = logging.getLogger(__name__)

_WHOLE_LOOK_SECONDS = 300.0
_ORPHAN_GRACE_SECONDS = 1
# How long the removal of what one pod has left may take.
_COLLECT_SECONDS = 300.0
# Of each container that many instances that ended are kept, for their logs and exit codes.
_ENDED_KEPT = 1


@dataclass(frozen=True, slots=True)
class Rooms:
    """What is kept tidy."""

    known: KnownPods
    workers: Workers
    cache: PodCache
    runtime: Runtime
    manager: StatusManager
    statuses: Statuses
    probes: Probes
    volumes: Volumes
    killer: Killer
    mirrors: Mirrors
    admitter: Admitter
    logs: LogFolders


class Housekeeping:
    """`is_complete` says that all pods which the node should have are known; `collect` forgets
    waits that are over."""

    def __init__(self, rooms: Rooms, *, is_complete: Callable[[], bool], collect: Callable[[], None]) -> None:
        self._rooms = rooms
        self._is_complete = is_complete
        self._collect_waits = collect
        self._uids: dict[str, None] = {}
        self._is_whole_look_due = True
        self._wakeup = asyncio.Event()

    def tidy(self, uid: str | None) -> None:
        """This pod may have left something behind; without a UID anybody may."""
        if uid is None:
            self._is_whole_look_due = True
        else:
            self._uids[uid] = None
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            if not await wait_until_set(self._wakeup, seconds=_WHOLE_LOOK_SECONDS):
                self._is_whole_look_due = True
            self._wakeup.clear()
            if self._is_complete():
                await self._keep_if_possible()
            # What comes meanwhile waits: one look may see to all of it.
            await asyncio.sleep(HOUSEKEEPING_SECONDS)

    async def _keep_if_possible(self) -> None:
        try:
            await self._keep()
        except Exception as error:  # noqa: BLE001 - an untidy node is better than none
            self._try_again(repr(error))

    async def _keep(self) -> None:
        uids, self._uids = list(self._uids), {}
        is_whole, self._is_whole_look_due = self._is_whole_look_due, False
        self._compare()
        await self._remove_mirrors()
        if is_whole:
            self._collect_waits()
            uids = list(dict.fromkeys((*uids, *self._rooms.cache, *self._rooms.volumes.mounted())))
        has_left_logs = is_whole
        for uid in uids:
            has_left_logs |= self._is_unwanted(uid)
            await self._tried(self._collect(uid))
        if has_left_logs:
            await self._remove_logs()

    def _compare(self) -> None:
        """The workers with what is wanted, and what the runtime has with both."""
        rooms = self._rooms
        working = rooms.workers.sync_known_pods(rooms.known)
        rooms.admitter.keep_only(lambda uid: uid in rooms.known or uid in working)
        rooms.manager.forget_all_but({each.uid for each in rooms.known})
        rooms.probes.keep_only({uid for uid, each in working.items() if each.stage is not Stage.TERMINATED})
        for pod in rooms.known:
            is_over = rooms.statuses.is_over(pod)
            if pod.uid not in working and (not is_over or pod.metadata.deletion_timestamp is not None):
                # Of one that was refused only its end is left to do.
                kind = UpdateType.KILL if is_over else UpdateType.CREATE
                rooms.workers.update_pod(PodUpdate(kind, pod))
            elif self._is_next_of_its_name(pod):
                rooms.workers.update_pod(PodUpdate(UpdateType.SYNC, pod))
        for uid in list(rooms.cache):
            if rooms.workers.state(uid) is None and uid not in rooms.known:
                self._end_orphan(uid)

    def _is_next_of_its_name(self, pod: NodePod) -> bool:
        """A static pod that waited for another of its name, which has ended: it starts now, not only when it is tried
        again by itself."""
        workers = self._rooms.workers
        return (
            is_static(pod)
            and workers.static_names.holder(full_name(pod)) is None
            and not workers.is_termination_requested(pod.uid)
        )

    async def _remove_mirrors(self) -> None:
        """Of static pods that are gone, once nothing of them runs (PW-178)."""
        for mirror in self._rooms.known.mirrors():
            name = full_name(mirror)
            is_orphan = self._rooms.known.static_of(mirror) is None
            if is_orphan and not self._rooms.workers.is_static_pod_terminating(name):
                is_deleted = await self._rooms.mirrors.delete(name, mirror.uid)
                if not is_deleted:
                    # Looked at again until the server says that it is gone.
                    self._wakeup.set()

    def _end_orphan(self, uid: str) -> None:
        observed = self._rooms.cache.last_seen(uid)
        if is_stopped(observed):
            return
        sandbox = next(iter(observed.sandboxes), None)
        name, namespace = ("", "") if sandbox is None else (sandbox.config.name, sandbox.config.namespace)
        log.info("pod %s/%s (%s) is not wanted any more and is ended", namespace, name, uid)
        self._rooms.workers.update_pod(
            PodUpdate(
                UpdateType.KILL,
                running=RunningPod(uid, namespace, name),
                kill=KillOptions(grace_seconds=_ORPHAN_GRACE_SECONDS),
            )
        )

    def _is_unwanted(self, uid: str) -> bool:
        """Nothing of it is to be kept."""
        return uid not in self._rooms.known and self._rooms.workers.should_content_be_removed(uid)

    async def _collect(self, uid: str) -> None:
        rooms = self._rooms
        observed = rooms.cache.last_seen(uid)
        if not self._is_unwanted(uid):
            await self._collect_some(observed)
            return
        if is_stopped(observed):
            for sandbox in observed.sandboxes:
                await rooms.runtime.remove_sandbox(sandbox.id)
            for container in observed.containers:
                await rooms.runtime.remove_container(container.id)
            await rooms.volumes.unmount(uid)
        rooms.killer.forget(uid)
        rooms.statuses.forget(uid)

    async def _collect_some(self, observed: ObservedPod) -> None:
        """Of a pod that is still wanted."""
        kept: dict[str, int] = {}
        gone: set[str] = set()
        for container in observed.containers:
            name = container.config.name
            if container.state is not ContainerState.EXITED:
                continue
            kept[name] = kept.get(name, 0) + 1
            if kept[name] > _ENDED_KEPT:
                await self._rooms.runtime.remove_container(container.id)
                gone.add(container.id)
        used = {each.sandbox_id for each in observed.containers if each.id not in gone}
        for sandbox in observed.sandboxes[1:]:
            if not sandbox.is_ready and sandbox.id not in used:
                await self._rooms.runtime.remove_sandbox(sandbox.id)

    async def _remove_logs(self) -> None:
        if self._rooms.logs.is_kept:
            await self._tried(asyncio.to_thread(self._rooms.logs.remove_if, self._is_unwanted))

    async def _tried(self, work: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(_COLLECT_SECONDS):
                await work
        except TimeoutError:
            self._try_again("it took too long")
        except PodlifeError as error:
            self._try_again(str(error))
        except Exception as error:  # noqa: BLE001 - it is about what one pod has left, and the others' agent goes on
            self._try_again(repr(error))

    def _try_again(self, why: str) -> None:
        log.warning("something was not removed, which is tried again: %s", why)
        self._is_whole_look_due = True
