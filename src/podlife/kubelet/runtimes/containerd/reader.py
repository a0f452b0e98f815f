"""Reads sandboxes and containers from the daemon, one or many, and passes all of it to `state_diff`.

A CRI list returns less than each object's status. Details that cannot change are cached: how a container ended, when a
running one started, the IPs of a sandbox. A list without changes is therefore one call for any number of containers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from podlife.kubelet.runtime import (
    ContainerState,
    ContainerStatus,
    NotFoundInRuntimeError,
    Resources,
    SandboxState,
    SandboxStatus,
)

from .client import ContainerdSettings, CriClient
from .messages import message
from .requests import reported_resources, selector
from .state_diff import StateDiff
from .statuses import (
    container_state,
    container_status,
    observed_container,
    observed_sandbox,
    sandbox_status,
    termination_file,
)


class StateReader:
    def __init__(self, client: CriClient, state: StateDiff, settings: ContainerdSettings) -> None:
        self._client = client
        self._state = state
        self._settings = settings
        self._containers: dict[str, ContainerStatus] = {}
        self._ips: dict[str, tuple[str, ...]] = {}

    async def sandbox(self, sandbox_id: str) -> SandboxStatus:
        """Raises NotFoundInRuntimeError, even if it exists but belongs to another kubelet."""
        try:
            raw = (await self._client.call("PodSandboxStatus", pod_sandbox_id=sandbox_id)).status
        except NotFoundInRuntimeError:
            self._state.sandbox_is_gone(sandbox_id)
            raise NotFoundInRuntimeError(f"sandbox {sandbox_id} not found") from None
        status = sandbox_status(raw)
        if status is None or not self._is_ours(raw):
            raise NotFoundInRuntimeError(f"sandbox {sandbox_id} does not belong to this kubelet")
        self._state.observe_sandbox(observed_sandbox(raw))
        self._ips[sandbox_id] = status.ips
        return status

    async def is_our_sandbox(self, sandbox_id: str) -> bool:
        """Uses the list, because the status call fails for a sandbox with a broken network."""
        wanted = message("PodSandboxFilter")(id=sandbox_id, label_selector=selector(self._settings))
        return bool((await self._client.call("ListPodSandbox", filter=wanted)).items)

    async def container(self, container_id: str) -> ContainerStatus:
        """Raises NotFoundInRuntimeError, even if it exists but belongs to another kubelet."""
        raw = await self.raw_status(container_id)
        status = container_status(raw)
        if status is None:
            raise NotFoundInRuntimeError(f"container {container_id} does not belong to this kubelet")
        # What this kubelet has requested counts, even if the daemon rounds it.
        kept = self._containers.get(status.id)
        own = status.config.resources
        status = _with_resources(status, kept.config.resources if kept else reported_resources(raw, own))
        self._containers[status.id] = status
        self._state.observe_container(observed_container(raw))
        return status

    async def note_resources(self, container_id: str, resources: Resources) -> None:
        """It has been given other resources, which not every daemon reports."""
        status = await self.container(container_id)
        self._containers[container_id] = _with_resources(status, resources)

    async def raw_status(self, container_id: str) -> Any:
        try:
            raw = (await self._client.call("ContainerStatus", container_id=container_id)).status
        except NotFoundInRuntimeError:
            self.forget_container(container_id)
            raise NotFoundInRuntimeError(f"container {container_id} not found") from None
        if not self._is_ours(raw):
            raise NotFoundInRuntimeError(f"container {container_id} does not belong to this kubelet")
        return raw

    async def sandboxes(self, pod_uid: str | None = None) -> list[SandboxStatus]:
        found = [sandbox_status(raw) for raw in await self._list_sandboxes(pod_uid)]
        return [await self._with_ips(status) for status in found if status is not None]

    async def containers(
        self, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        found = [await self._details(raw) for raw in await self._list_containers(pod_uid, sandbox_id)]
        return [status for status in found if status is not None]

    async def termination_files(self) -> list[str]:
        return [termination_file(raw) for raw in await self._list_containers(None, None)]

    async def relist(self) -> None:
        """List everything and emit the changes."""
        known = self._state.known()
        # A sandbox is older than its containers: in this order every listed container has its sandbox.
        containers = await self._list_containers(None, None)
        sandboxes = await self._list_sandboxes(None)
        self._state.relisted(known, map(observed_sandbox, sandboxes), map(observed_container, containers))
        self._forget_all_but({raw.id for raw in containers}, {raw.id for raw in sandboxes}, known)

    async def refresh(self, container_or_sandbox_id: str) -> bool:
        """Read its current state; whether it has ended or belongs to another kubelet."""
        try:
            if self._state.has_container(container_or_sandbox_id):
                await self.container(container_or_sandbox_id)
            elif self._state.has_sandbox(container_or_sandbox_id):
                await self.sandbox(container_or_sandbox_id)
        except NotFoundInRuntimeError:
            return True
        return self._state.has_ended(container_or_sandbox_id)

    def forget_container(self, container_id: str) -> None:
        self._containers.pop(container_id, None)
        self._state.container_is_gone(container_id)

    def forget_sandbox(self, sandbox_id: str) -> None:
        self._ips.pop(sandbox_id, None)
        for container_id in self._state.containers_in(sandbox_id):
            self._containers.pop(container_id, None)
        self._state.sandbox_is_gone(sandbox_id)

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

    async def _details(self, raw: Any) -> ContainerStatus | None:
        state = container_state(raw.state)
        if state is ContainerState.CREATED:
            return container_status(raw)
        kept = self._containers.get(raw.id)
        if kept is not None and kept.state is state:
            return kept
        try:
            return await self.container(raw.id)
        except NotFoundInRuntimeError:
            return None

    def _is_ours(self, raw: Any) -> bool:
        return all(raw.labels.get(name) == value for name, value in selector(self._settings).items())

    def _forget_all_but(self, containers: set[str], sandboxes: set[str], known: frozenset[str]) -> None:
        for gone in [each for each in self._containers if each in known and each not in containers]:
            del self._containers[gone]
        for gone in [each for each in self._ips if each in known and each not in sandboxes]:
            del self._ips[gone]


def _with_resources(status: ContainerStatus, resources: Resources) -> ContainerStatus:
    return dataclasses.replace(status, config=dataclasses.replace(status.config, resources=resources))
