"""The events between two observations of the runtime (PL-01 to PL-03, PL-13). Pure.

A ready sandbox counts as a running container.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from podlife.kubelet.runtime import ContainerState, ContainerStatus, SandboxStatus

States = Mapping[str, Mapping[str, ContainerState]]
"""By pod UID, then by container or sandbox ID."""


class PodLifecycleEventType(enum.Enum):
    STARTED = "ContainerStarted"
    DIED = "ContainerDied"
    REMOVED = "ContainerRemoved"
    # Not reported.
    CHANGED = "ContainerChanged"

    @property
    def is_sync_due(self) -> bool:
        """Removed containers need no sync (PL-13)."""
        return self in (PodLifecycleEventType.STARTED, PodLifecycleEventType.DIED)


@dataclass(frozen=True, slots=True)
class PodLifecycleEvent:
    kind: PodLifecycleEventType
    pod_uid: str
    container_id: str


def states_of(sandboxes: Iterable[SandboxStatus], containers: Iterable[ContainerStatus]) -> States:
    states: dict[str, dict[str, ContainerState]] = {}
    for container in containers:
        states.setdefault(container.pod_uid, {})[container.id] = container.state
    for sandbox in sandboxes:
        state = ContainerState.RUNNING if sandbox.is_ready else ContainerState.EXITED
        states.setdefault(sandbox.config.pod_uid, {})[sandbox.id] = state
    return states


def compute_events(old: States, new: States) -> Iterator[PodLifecycleEvent]:
    """In the order of the listing, removed containers last."""
    for uid in dict.fromkeys((*new, *old)):
        before, after = old.get(uid, {}), new.get(uid, {})
        for id_ in dict.fromkeys((*after, *before)):
            for kind in _kinds(before.get(id_), after.get(id_)):
                yield PodLifecycleEvent(kind, uid, id_)


def _kinds(before: ContainerState | None, after: ContainerState | None) -> tuple[PodLifecycleEventType, ...]:
    before, after = _normalized(before), _normalized(after)
    if before is after:
        return ()
    match after:
        case ContainerState.RUNNING:
            return (PodLifecycleEventType.STARTED,)
        case ContainerState.EXITED:
            return (PodLifecycleEventType.DIED,)
        case None if before is ContainerState.EXITED:
            return (PodLifecycleEventType.REMOVED,)
        case None:
            return (PodLifecycleEventType.DIED, PodLifecycleEventType.REMOVED)
        case _:
            return (PodLifecycleEventType.CHANGED,)


def _normalized(state: ContainerState | None) -> ContainerState | None:
    """A created container that has not started counts as unknown."""
    return ContainerState.UNKNOWN if state is ContainerState.CREATED else state
