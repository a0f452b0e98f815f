"""The last observed state of the daemon, and the events between two observations.

Changes are observed by the runtime's own calls, by the daemon's events and by lists. All of them arrive here, so that
every event is emitted once and in order. States only move forward, and a removed object never reappears: IDs are not
reused, so a late list changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podlife.kubelet.runtime import ContainerState, EventKind, RuntimeEvent, SandboxState

# Far more than can be removed during one list call.
_MAX_GONE = 10_000
_ORDER = [ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED]
_EVENTS = {
    ContainerState.RUNNING: EventKind.CONTAINER_STARTED,
    ContainerState.EXITED: EventKind.CONTAINER_STOPPED,
}


@dataclass(frozen=True, slots=True)
class ObservedSandbox:
    id: str
    pod_uid: str
    state: SandboxState


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    id: str
    sandbox_id: str
    pod_uid: str
    state: ContainerState


class StateDiff:
    def __init__(self, publish: Callable[[RuntimeEvent], None]) -> None:
        self._publish = publish
        self._sandboxes: dict[str, ObservedSandbox] = {}
        self._containers: dict[str, ObservedContainer] = {}
        self._starting: set[str] = set()
        # An ordered set, the oldest removal first.
        self._gone: dict[str, None] = {}
        self._is_filled = False

    def has_sandbox(self, sandbox_id: str) -> bool:
        return sandbox_id in self._sandboxes

    def has_container(self, container_id: str) -> bool:
        return container_id in self._containers

    def has_ended(self, container_or_sandbox_id: str) -> bool:
        """True for unknown and removed ones, too."""
        if (container := self._containers.get(container_or_sandbox_id)) is not None:
            return container.state is ContainerState.EXITED
        sandbox = self._sandboxes.get(container_or_sandbox_id)
        return sandbox is None or sandbox.state is SandboxState.NOT_READY

    def containers_in(self, sandbox_id: str) -> list[str]:
        return [each.id for each in self._containers.values() if each.sandbox_id == sandbox_id]

    def known(self) -> frozenset[str]:
        """Call it before a list: only IDs that were known then can be missing from the result."""
        return frozenset((*self._sandboxes, *self._containers))

    def relisted(
        self,
        known: frozenset[str],
        sandboxes: Iterable[ObservedSandbox],
        containers: Iterable[ObservedContainer],
    ) -> None:
        """Apply a complete list. The first one emits a single RELIST: subscribers list the details themselves."""
        publish = self._publish
        if not self._is_filled:
            self._publish = lambda _: None
        try:
            self._apply(known, list(sandboxes), list(containers))
        finally:
            self._publish = publish
        if not self._is_filled:
            self._is_filled = True
            publish(RuntimeEvent(EventKind.RELIST))

    def observe_sandbox(self, observed: ObservedSandbox) -> None:
        if observed.id in self._gone:
            return
        before = self._sandboxes.get(observed.id)
        if before is None:
            self._emit(EventKind.SANDBOX_STARTED, observed)
        elif before.state is SandboxState.NOT_READY:
            return
        self._sandboxes[observed.id] = observed
        if observed.state is SandboxState.NOT_READY:
            self._emit(EventKind.SANDBOX_STOPPED, observed)

    def observe_container(self, observed: ObservedContainer) -> None:
        if observed.id in self._gone or observed.state not in _ORDER:
            return
        before = self._containers.get(observed.id)
        if before is None:
            self._emit(EventKind.CONTAINER_CREATED, observed)
            before = ObservedContainer(
                observed.id, observed.sandbox_id, observed.pod_uid, ContainerState.CREATED
            )
            self._containers[observed.id] = before
        # Until the start call returns it is unknown whether the container ever ran.
        if observed.id not in self._starting and _ORDER.index(observed.state) > _ORDER.index(before.state):
            self._containers[observed.id] = observed
            self._emit(_EVENTS[observed.state], observed)

    def begin_start(self, container_id: str) -> None:
        """Hold back its events until `finish_start` says whether it ran."""
        self._starting.add(container_id)

    def finish_start(self, container_id: str, *, is_running: bool) -> None:
        self._starting.discard(container_id)
        if is_running and (before := self._containers.get(container_id)) is not None:
            self.observe_container(
                ObservedContainer(before.id, before.sandbox_id, before.pod_uid, ContainerState.RUNNING)
            )

    def sandbox_is_gone(self, sandbox_id: str) -> None:
        observed = self._sandboxes.get(sandbox_id)
        if observed is None:
            self._remember_gone(sandbox_id)
            return
        if observed.state is SandboxState.READY:
            self._emit(EventKind.SANDBOX_STOPPED, observed)
        for container_id in self.containers_in(sandbox_id):
            self.container_is_gone(container_id)
        del self._sandboxes[sandbox_id]
        self._remember_gone(sandbox_id)
        self._emit(EventKind.SANDBOX_REMOVED, observed)

    def container_is_gone(self, container_id: str) -> None:
        self._starting.discard(container_id)
        observed = self._containers.pop(container_id, None)
        self._remember_gone(container_id)
        if observed is None:
            return
        if observed.state is ContainerState.RUNNING:
            self._emit(EventKind.CONTAINER_STOPPED, observed)
        self._emit(EventKind.CONTAINER_REMOVED, observed)

    def _apply(
        self, known: frozenset[str], sandboxes: list[ObservedSandbox], containers: list[ObservedContainer]
    ) -> None:
        for sandbox in sandboxes:
            self.observe_sandbox(sandbox)
        for container in containers:
            self.observe_container(container)
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

    def _emit(self, kind: EventKind, observed: ObservedSandbox | ObservedContainer) -> None:
        if isinstance(observed, ObservedContainer):
            event = RuntimeEvent(kind, observed.pod_uid, observed.sandbox_id, observed.id)
        else:
            event = RuntimeEvent(kind, observed.pod_uid, observed.id)
        self._publish(event)
