"""Removes what pods leave behind: containers, sandboxes, volumes, logs.

Of a wanted pod, only instances of containers beyond the last exited one and unused sandboxes are removed. A failed
removal is retried every two seconds, for that pod alone; its reason is logged once. A removal that hangs delays only
other removals.
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

# Timeout for the removal of one pod's remains.
_COLLECT_SECONDS = 300.0
# Exited instances kept of each container, for logs and exit codes.
_EXITED_KEPT = 1


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
        # The last logged reason, by the subject of the removal.
        self._logged: dict[str, str] = {}

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
                if not await self._attempt(uid, self._collect(uid)):
                    self.add((uid,))
            await self._remove_logs()
            # Also the delay before failed removals are retried.
            await asyncio.sleep(HOUSEKEEPING_SECONDS)

    def _is_unwanted(self, uid: str) -> bool:
        """Whether everything of the pod can be removed."""
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
        """For a wanted pod. Keeps the newest sandbox even if unused: the next one takes its attempt number from it."""
        kept: dict[str, int] = {}
        removed: set[str] = set()
        for container in observed.containers:
            name = container.config.name
            if container.state is not ContainerState.EXITED:
                continue
            kept[name] = kept.get(name, 0) + 1
            if kept[name] > _EXITED_KEPT:
                await self._runtime.remove_container(container.id)
                removed.add(container.id)
        used = {each.sandbox_id for each in observed.containers if each.id not in removed}
        for sandbox in observed.sandboxes[1:]:
            if not sandbox.is_ready and sandbox.id not in used:
                await self._runtime.remove_sandbox(sandbox.id)

    async def _remove_logs(self) -> None:
        has_logs, self._has_logs = self._has_logs, False
        if not has_logs or not self._kuberuntime.log_directory.is_kept:
            return
        removing = asyncio.to_thread(self._kuberuntime.log_directory.remove_if, self._is_unwanted)
        if not await self._attempt("logs", removing):
            self._has_logs = True
            self._wakeup.set()

    async def _attempt(self, what: str, work: Awaitable[None]) -> bool:
        """Whether the removal succeeded; logs the reason if not."""
        try:
            async with asyncio.timeout(_COLLECT_SECONDS):
                await work
        except TimeoutError:
            self._log_once(what, f"not done within {_COLLECT_SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - affects only this removal
            self._log_once(what, str(error) or repr(error))
        else:
            self._logged.pop(what, None)
            return True
        return False

    def _log_once(self, what: str, why: str) -> None:
        if self._logged.get(what) != why:
            log.warning("removal of %s failed, retrying every %g s: %s", what, HOUSEKEEPING_SECONDS, why)
        self._logged[what] = why
