"""Reads sandboxes and containers from the daemon, one or many, and passes all of it to `state_diff`.

A CRI list returns less than the status of each. What cannot change any more is read once and kept: how a container
ended, when a running one started, the addresses of a sandbox. So a list in which nothing has changed is one call,
however many containers there are.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from podlife.kubelet.runtime import (
    ContainerState,
    ContainerStatus,
    NotFoundInRuntimeError,
    SandboxState,
    SandboxStatus,
)

from .client import ContainerdSettings, CriClient
from .messages import message
from .requests import selector
from .state_diff import StateDiff
from .statuses import (
    container_state,
    container_status,
    sandbox_status,
    seen_container,
    seen_sandbox,
    termination_file,
)


class StateReader:
    def __init__(self, client: CriClient, mirror: StateDiff, settings: ContainerdSettings) -> None:
        self._client = client
        self._mirror = mirror
        self._settings = settings
        self._containers: dict[str, ContainerStatus] = {}
        self._ips: dict[str, tuple[str, ...]] = {}

    async def sandbox(self, sandbox_id: str) -> SandboxStatus:
        """Raises NotFoundInRuntimeError, also for one that is not ours."""
        try:
            told = (await self._client.call("PodSandboxStatus", pod_sandbox_id=sandbox_id)).status
        except NotFoundInRuntimeError:
            self._mirror.sandbox_is_gone(sandbox_id)
            raise NotFoundInRuntimeError(f"there is no sandbox {sandbox_id}") from None
        status = sandbox_status(told)
        if status is None or not self._is_ours(told):
            raise NotFoundInRuntimeError(f"there is no sandbox {sandbox_id} of this agent")
        self._mirror.saw_sandbox(seen_sandbox(told))
        self._ips[sandbox_id] = status.ips
        return status

    async def is_our_sandbox(self, sandbox_id: str) -> bool:
        """Asked of the listing, which answers also for one whose network is in no good state."""
        wanted = message("PodSandboxFilter")(id=sandbox_id, label_selector=selector(self._settings))
        return bool((await self._client.call("ListPodSandbox", filter=wanted)).items)

    async def container(self, container_id: str) -> ContainerStatus:
        """Raises NotFoundInRuntimeError, also for one that is not ours."""
        told = await self.told_of(container_id)
        status = container_status(told)
        if status is None:
            raise NotFoundInRuntimeError(f"there is no container {container_id} of this agent")
        self._containers[status.id] = status
        self._mirror.saw_container(seen_container(told))
        return status

    async def told_of(self, container_id: str) -> Any:
        try:
            told = (await self._client.call("ContainerStatus", container_id=container_id)).status
        except NotFoundInRuntimeError:
            self.forget_container(container_id)
            raise NotFoundInRuntimeError(f"there is no container {container_id}") from None
        if not self._is_ours(told):
            raise NotFoundInRuntimeError(f"there is no container {container_id} of this agent")
        return told

    async def sandboxes(self, pod_uid: str | None = None) -> list[SandboxStatus]:
        found = [sandbox_status(told) for told in await self._list_sandboxes(pod_uid)]
        return [await self._with_ips(status) for status in found if status is not None]

    async def containers(
        self, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        found = [await self._whole(told) for told in await self._list_containers(pod_uid, sandbox_id)]
        return [status for status in found if status is not None]

    async def termination_files(self) -> list[str]:
        return [termination_file(told) for told in await self._list_containers(None, None)]

    async def relist(self) -> None:
        """Take everything there is into the mirror."""
        known = self._mirror.known()
        # A sandbox is older than its containers: listed in this order, none of them is seen without it.
        containers = await self._list_containers(None, None)
        sandboxes = await self._list_sandboxes(None)
        self._mirror.relisted(known, map(seen_sandbox, sandboxes), map(seen_container, containers))
        self._forget_all_but({told.id for told in containers}, {told.id for told in sandboxes}, known)

    async def look_at(self, container_or_sandbox_id: str) -> bool:
        """See how it is now; whether it has ended, or is not ours."""
        try:
            if self._mirror.has_container(container_or_sandbox_id):
                await self.container(container_or_sandbox_id)
            elif self._mirror.has_sandbox(container_or_sandbox_id):
                await self.sandbox(container_or_sandbox_id)
        except NotFoundInRuntimeError:
            return True
        return self._mirror.has_ended(container_or_sandbox_id)

    def forget_container(self, container_id: str) -> None:
        self._containers.pop(container_id, None)
        self._mirror.container_is_gone(container_id)

    def forget_sandbox(self, sandbox_id: str) -> None:
        self._ips.pop(sandbox_id, None)
        for container_id in self._mirror.containers_in(sandbox_id):
            self._containers.pop(container_id, None)
        self._mirror.sandbox_is_gone(sandbox_id)

    async def _list_sandboxes(self, pod_uid: str | None) -> list[Any]:
        labels = selector(self._settings, pod_uid)
        wanted = message("PodSandboxFilter")(label_selector=labels)
        return list((await self._client.call("ListPodSandbox", filter=wanted)).items)

    async def _list_containers(self, pod_uid: str | None, sandbox_id: str | None) -> list[Any]:
        labels = selector(self._settings, pod_uid)
        wanted = message("ContainerFilter")(label_selector=labels, pod_sandbox_id=sandbox_id or "")
        return list((await self._client.call("ListContainers", filter=wanted)).containers)

    async def _with_ips(self, status: SandboxStatus) -> SandboxStatus:
        if status.state is SandboxState.READY and status.id not in self._ips:
            try:
                return await self.sandbox(status.id)
            except NotFoundInRuntimeError:
                return status
        return dataclasses.replace(status, ips=self._ips.get(status.id, ()))

    async def _whole(self, told: Any) -> ContainerStatus | None:
        state = container_state(told.state)
        if state is ContainerState.CREATED:
            return container_status(told)
        kept = self._containers.get(told.id)
        if kept is not None and kept.state is state:
            return kept
        try:
            return await self.container(told.id)
        except NotFoundInRuntimeError:
            return None

    def _is_ours(self, told: Any) -> bool:
        return all(told.labels.get(name) == value for name, value in selector(self._settings).items())

    def _forget_all_but(self, containers: set[str], sandboxes: set[str], known: frozenset[str]) -> None:
        for gone in [each for each in self._containers if each in known and each not in containers]:
            del self._containers[gone]
        for gone in [each for each in self._ips if each in known and each not in sandboxes]:
            del self._ips[gone]
