"""Removes what pods leave behind: containers, sandboxes, volumes, logs.

Nothing is removed of a pod that is wanted, except instances of its containers beyond the last that ended and sandboxes
that nothing uses. A removal that fails is retried every two seconds, for the pod it is about alone; its reason is
logged once. A removal that hangs delays only other removals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable

from podlife.kubelet.constants import HOUSEKEEPING_SECONDS
from podlife.kubelet.interfaces import Volumes
from podlife.kubelet.kuberuntime.manager import KubeRuntimeManager
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pleg import PodCache
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.podworkers import PodWorkers
from podlife.kubelet.runtime import ContainerState

log = logging.getLogger(__name__)

# Maximum time for removing what one pod left.
_COLLECT_SECONDS = 300.0
# Instances of each container that are kept after they ended, for their logs and exit codes.
_ENDED_KEPT = 1


class ContainerGC:
    def __init__(
        self,
        kuberuntime: KubeRuntimeManager,
        pods: PodManager,
        workers: PodWorkers,
        cache: PodCache,
        volumes: Volumes,
    ) -> None:
        self._kuberuntime = kuberuntime
        self._runtime = kuberuntime.runtime
        self._pods = pods
        self._workers = workers
        self._cache = cache
        self._volumes = volumes
        self._uids: dict[str, None] = {}
        self._has_logs = False
        self._wakeup = asyncio.Event()
        # The reason that was last logged, by what could not be removed.
        self._complaints: dict[str, str] = {}

    def add(self, uids: Iterable[str]) -> None:
        self._uids.update(dict.fromkeys(uids))
        self._wakeup.set()

    def add_all(self) -> None:
        self._kuberuntime.collect_backoffs()
        self._has_logs = True
        self.add((*self._cache, *self._volumes.mounted()))

    async def run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            uids, self._uids = self._uids, {}
            for uid in uids:
                self._has_logs |= self._is_unwanted(uid)
                if not await self._tried(uid, self._collect(uid)):
                    self.add((uid,))
            await self._remove_logs()
            # Also the pause between two attempts at what failed.
            await asyncio.sleep(HOUSEKEEPING_SECONDS)

    def _is_unwanted(self, uid: str) -> bool:
        """Nothing of it is to be kept."""
        return uid not in self._pods and self._workers.should_content_be_removed(uid)

    async def _collect(self, uid: str) -> None:
        observed = self._cache.last_seen(uid)
        if not self._is_unwanted(uid):
            await self._collect_some(observed)
            return
        if observed.is_stopped:
            for sandbox in observed.sandboxes:
                await self._runtime.remove_sandbox(sandbox.id)
            for container in observed.containers:
                await self._runtime.remove_container(container.id)
            await self._volumes.unmount(uid)
        self._kuberuntime.forget(uid)

    async def _collect_some(self, observed: ObservedPod) -> None:
        """Of a wanted pod. The newest sandbox is kept even if it is empty: the next one counts its attempt from it."""
        kept: dict[str, int] = {}
        gone: set[str] = set()
        for container in observed.containers:
            name = container.config.name
            if container.state is not ContainerState.EXITED:
                continue
            kept[name] = kept.get(name, 0) + 1
            if kept[name] > _ENDED_KEPT:
                await self._runtime.remove_container(container.id)
                gone.add(container.id)
        used = {each.sandbox_id for each in observed.containers if each.id not in gone}
        for sandbox in observed.sandboxes[1:]:
            if not sandbox.is_ready and sandbox.id not in used:
                await self._runtime.remove_sandbox(sandbox.id)

    async def _remove_logs(self) -> None:
        has_logs, self._has_logs = self._has_logs, False
        if not has_logs or not self._kuberuntime.log_directory.is_kept:
            return
        removing = asyncio.to_thread(self._kuberuntime.log_directory.remove_if, self._is_unwanted)
        if not await self._tried("logs", removing):
            self._has_logs = True
            self._wakeup.set()

    async def _tried(self, what: str, work: Awaitable[None]) -> bool:
        """Whether it was done; why not is logged."""
        try:
            async with asyncio.timeout(_COLLECT_SECONDS):
                await work
        except TimeoutError:
            self._complain(what, f"not done within {_COLLECT_SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - it concerns what one pod left; the agent goes on for the others
            self._complain(what, str(error) or repr(error))
        else:
            self._complaints.pop(what, None)
            return True
        return False

    def _complain(self, what: str, why: str) -> None:
        if self._complaints.get(what) != why:
            log.warning("removal of %s failed, retrying every %g s: %s", what, HOUSEKEEPING_SECONDS, why)
        self._complaints[what] = why
