"""The last observed state of the daemon, and the events between two observations.

Changes are observed in several ways: by the runtime's own calls, by the daemon's events, by a list. All of them arrive
here, so every event is emitted once and in order. States only move forward, and what is gone does not come back: an ID
is never reused, so a late list changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podlife.kubelet.runtime import ContainerState, EventKind, RuntimeEvent, SandboxState

# Far more than can be removed while one listing is on its way.
_MAX_GONE = 10_000
_ORDER = [ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED]
_TOLD = {
    ContainerState.RUNNING: EventKind.CONTAINER_STARTED,
    ContainerState.EXITED: EventKind.CONTAINER_STOPPED,
}


@dataclass(frozen=True, slots=True)
class SeenSandbox:
    id: str
    pod_uid: str
    state: SandboxState


@dataclass(frozen=True, slots=True)
class SeenContainer:
    id: str
    sandbox_id: str
    pod_uid: str
    state: ContainerState


class StateDiff:
    def __init__(self, publish: Callable[[RuntimeEvent], None]) -> None:
        self._publish = publish
        self._sandboxes: dict[str, SeenSandbox] = {}
        self._containers: dict[str, SeenContainer] = {}
        self._starting: set[str] = set()
        # In the order of their going; a dict, for its order.
        self._gone: dict[str, None] = {}
        self._is_filled = False

    def has_sandbox(self, sandbox_id: str) -> bool:
        return sandbox_id in self._sandboxes

    def has_container(self, container_id: str) -> bool:
        return container_id in self._containers

    def has_ended(self, container_or_sandbox_id: str) -> bool:
        """Also where it is not known, or not any more."""
        if (container := self._containers.get(container_or_sandbox_id)) is not None:
            return container.state is ContainerState.EXITED
        sandbox = self._sandboxes.get(container_or_sandbox_id)
        return sandbox is None or sandbox.state is SandboxState.NOT_READY

    def containers_in(self, sandbox_id: str) -> list[str]:
        return [each.id for each in self._containers.values() if each.sandbox_id == sandbox_id]

    def known(self) -> frozenset[str]:
        """To be taken before a listing begins: only what was known then can be missing from it."""
        return frozenset((*self._sandboxes, *self._containers))

    def relisted(
        self, known: frozenset[str], sandboxes: Iterable[SeenSandbox], containers: Iterable[SeenContainer]
    ) -> None:
        """Take a whole listing. The first one is not told step by step: whoever listens already lists for himself."""
        publish = self._publish
        if not self._is_filled:
            self._publish = lambda _: None
        try:
            self._take(known, list(sandboxes), list(containers))
        finally:
            self._publish = publish
        if not self._is_filled:
            self._is_filled = True
            publish(RuntimeEvent(EventKind.RELIST))

    def saw_sandbox(self, seen: SeenSandbox) -> None:
        if seen.id in self._gone:
            return
        before = self._sandboxes.get(seen.id)
        if before is None:
            self._tell(EventKind.SANDBOX_STARTED, seen)
        elif before.state is SandboxState.NOT_READY:
            return
        self._sandboxes[seen.id] = seen
        if seen.state is SandboxState.NOT_READY:
            self._tell(EventKind.SANDBOX_STOPPED, seen)

    def saw_container(self, seen: SeenContainer) -> None:
        if seen.id in self._gone or seen.state not in _ORDER:
            return
        before = self._containers.get(seen.id)
        if before is None:
            self._tell(EventKind.CONTAINER_CREATED, seen)
            before = SeenContainer(seen.id, seen.sandbox_id, seen.pod_uid, ContainerState.CREATED)
            self._containers[seen.id] = before
        # Whether it ever ran is not known before its start was answered.
        if seen.id not in self._starting and _ORDER.index(seen.state) > _ORDER.index(before.state):
            self._containers[seen.id] = seen
            self._tell(_TOLD[seen.state], seen)

    def starts(self, container_id: str) -> None:
        """From here on its steps are held back, until `started` says how it began."""
        self._starting.add(container_id)

    def started(self, container_id: str, *, it_runs: bool) -> None:
        self._starting.discard(container_id)
        if it_runs and (before := self._containers.get(container_id)) is not None:
            self.saw_container(
                SeenContainer(before.id, before.sandbox_id, before.pod_uid, ContainerState.RUNNING)
            )

    def sandbox_is_gone(self, sandbox_id: str) -> None:
        seen = self._sandboxes.get(sandbox_id)
        if seen is None:
            self._remember_gone(sandbox_id)
            return
        if seen.state is SandboxState.READY:
            self._tell(EventKind.SANDBOX_STOPPED, seen)
        for container_id in self.containers_in(sandbox_id):
            self.container_is_gone(container_id)
        del self._sandboxes[sandbox_id]
        self._remember_gone(sandbox_id)
        self._tell(EventKind.SANDBOX_REMOVED, seen)

    def container_is_gone(self, container_id: str) -> None:
        self._starting.discard(container_id)
        seen = self._containers.pop(container_id, None)
        self._remember_gone(container_id)
        if seen is None:
            return
        if seen.state is ContainerState.RUNNING:
            self._tell(EventKind.CONTAINER_STOPPED, seen)
        self._tell(EventKind.CONTAINER_REMOVED, seen)

    def _take(
        self, known: frozenset[str], sandboxes: list[SeenSandbox], containers: list[SeenContainer]
    ) -> None:
        for sandbox in sandboxes:
            self.saw_sandbox(sandbox)
        for container in containers:
            self.saw_container(container)
        listed = {each.id for each in sandboxes} | {each.id for each in containers}
        for missing in known - listed:
            if missing in self._containers:
                self.container_is_gone(missing)
        for missing in known - listed:
            if missing in self._sandboxes:
                self.sandbox_is_gone(missing)

    def _remember_gone(self, gone: str) -> None:
        self._gone[gone] = None
        if len(self._gone) > _MAX_GONE:
            del self._gone[next(iter(self._gone))]

    def _tell(self, kind: EventKind, seen: SeenSandbox | SeenContainer) -> None:
        if isinstance(seen, SeenContainer):
            event = RuntimeEvent(kind, seen.pod_uid, seen.sandbox_id, seen.id)
        else:
            event = RuntimeEvent(kind, seen.pod_uid, seen.id)
        self._publish(event)
