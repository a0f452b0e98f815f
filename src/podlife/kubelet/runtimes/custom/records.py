"""Sandboxes and containers, in memory and on disk: one small file each, replaced atomically.

A restarted kubelet loads them. They are not fsynced at each change: after a crash of the machine your compute reports
what is running, and containers it does not know are reported as unknown.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.custom.compute import End

log = logging.getLogger(__name__)


class StoredSandbox(msgspec.Struct):
    id: str
    config: SandboxConfig
    created_at: datetime
    state: SandboxState = SandboxState.READY


class StoredContainer(msgspec.Struct):
    id: str
    sandbox_id: str
    config: ContainerConfig
    created_at: datetime
    log_path: Path | None = None
    # Set before the compute is asked to start it, so that it is never asked twice.
    is_claimed: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    end: End | None = None


@dataclass(slots=True)
class Sandbox:
    stored: StoredSandbox
    containers: dict[str, Container] = field(default_factory=dict)

    def status(self, ips: tuple[str, ...]) -> SandboxStatus:
        stored = self.stored
        shown = ips if stored.state is SandboxState.READY else ()
        return SandboxStatus(stored.id, stored.config, stored.state, stored.created_at, shown)


@dataclass(slots=True)
class Container:
    stored: StoredContainer
    sandbox: Sandbox
    is_being_removed: bool = False
    # When it will be killed, in the loop's time; only ever moves earlier.
    kill_at: float | None = None
    starting: asyncio.Task[None] | None = None
    stopping: asyncio.Task[None] | None = None
    # Set when it has ended or its deadline has moved.
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return self.stored.id

    @property
    def state(self) -> ContainerState:
        stored = self.stored
        if stored.end is not None:
            return ContainerState.EXITED
        # A claimed container counts as running until it is known not to be, because it may have to be stopped.
        has_begun = stored.is_claimed and self.starting is None
        return ContainerState.RUNNING if has_begun else ContainerState.CREATED

    def status(self) -> ContainerStatus:
        stored, end = self.stored, self.stored.end
        is_running = self.state is ContainerState.RUNNING
        return ContainerStatus(
            id=stored.id,
            sandbox_id=stored.sandbox_id,
            pod_uid=self.sandbox.stored.config.pod_uid,
            config=stored.config,
            state=self.state,
            created_at=stored.created_at,
            started_at=stored.started_at or (stored.created_at if is_running else None),
            finished_at=stored.finished_at,
            exit_code=end.exit_code if end else None,
            reason=end.reason if end else "",
            message=end.message if end else "",
            termination_message=end.termination_message if end else "",
            image_ref=stored.config.image,
            log_path=stored.log_path,
        )


Stored = TypeVar("Stored", StoredSandbox, StoredContainer)


class Records:
    def __init__(self, folder: Path) -> None:
        self.sandboxes: dict[str, Sandbox] = {}
        self.containers: dict[str, Container] = {}
        self._of_pods: dict[str, dict[str, Sandbox]] = {}
        self._folders = {StoredSandbox: folder / "sandboxes", StoredContainer: folder / "containers"}

    def load(self) -> None:
        """Load what an earlier kubelet left."""
        self.sandboxes, self.containers, self._of_pods = {}, {}, {}
        for folder in self._folders.values():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for sandbox in self._read(StoredSandbox):
            self._index_sandbox(Sandbox(sandbox))
        for container in self._read(StoredContainer):
            if container.sandbox_id in self.sandboxes:
                self._index_container(Container(container, self.sandboxes[container.sandbox_id]))
            else:
                self._unlink(container)

    def of_pod(self, pod_uid: str) -> list[Sandbox]:
        return list(self._of_pods.get(pod_uid, {}).values())

    def add_sandbox(self, stored: StoredSandbox) -> Sandbox:
        self.save(stored)
        return self._index_sandbox(Sandbox(stored))

    def add_container(self, stored: StoredContainer, sandbox: Sandbox) -> Container:
        self.save(stored)
        return self._index_container(Container(stored, sandbox))

    def remove_sandbox(self, sandbox: Sandbox) -> None:
        uid = sandbox.stored.config.pod_uid
        del self.sandboxes[sandbox.stored.id]
        del self._of_pods[uid][sandbox.stored.id]
        if not self._of_pods[uid]:
            del self._of_pods[uid]
        self._unlink(sandbox.stored)

    def remove_container(self, container: Container) -> None:
        del self.containers[container.id]
        del container.sandbox.containers[container.id]
        self._unlink(container.stored)

    def save(self, stored: Stored) -> None:
        path = self._path(stored)
        temporary = path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(stored, enc_hook=str))
        temporary.rename(path)

    def _index_sandbox(self, sandbox: Sandbox) -> Sandbox:
        self.sandboxes[sandbox.stored.id] = sandbox
        self._of_pods.setdefault(sandbox.stored.config.pod_uid, {})[sandbox.stored.id] = sandbox
        return sandbox

    def _index_container(self, container: Container) -> Container:
        self.containers[container.id] = container.sandbox.containers[container.id] = container
        return container

    def _read(self, kind: type[Stored]) -> list[Stored]:
        found: list[Stored] = []
        for path in sorted(self._folders[kind].glob("*.json")):
            try:
                found.append(
                    msgspec.json.decode(
                        path.read_bytes(), type=kind, dec_hook=lambda type_, text: type_(text)
                    )
                )
            except ValueError as failure:
                log.warning("%s cannot be read and is forgotten: %s", path, failure)
                path.unlink()
        return found

    def _unlink(self, stored: Stored) -> None:
        self._path(stored).unlink(missing_ok=True)

    def _path(self, stored: Stored) -> Path:
        return self._folders[type(stored)] / f"{stored.id}.json"
