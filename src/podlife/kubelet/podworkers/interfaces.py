"""What the workers need of others: the steps that do the work, the cache of what the runtime says, and where events go.

A step, and the cache, may answer at once or with something to wait for. One that has nothing to wait for costs no task:
write `def` where a step is trivial, `async def` where it is not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from podlife.kubelet.podworkers.updates import Pod, RunningPod, StatusOverride, UpdateType

__all__ = ["EventRecorder", "PodSteps", "RuntimeStatus", "S", "StatusCache", "SyncResult", "is_stopped"]


class Container(Protocol):
    @property
    def is_running(self) -> bool: ...


class Sandbox(Protocol):
    @property
    def is_ready(self) -> bool: ...


class RuntimeStatus(Protocol):
    """What the runtime said about a pod when it was last asked."""

    @property
    def containers(self) -> Iterable[Container]: ...
    @property
    def sandboxes(self) -> Iterable[Sandbox]: ...


S = TypeVar("S", bound=RuntimeStatus)
S_co = TypeVar("S_co", bound=RuntimeStatus, covariant=True)
S_contra = TypeVar("S_contra", bound=RuntimeStatus, contravariant=True)
P_contra = TypeVar("P_contra", bound=Pod, contravariant=True)
R_contra = TypeVar("R_contra", bound=RunningPod, contravariant=True)


def is_stopped(status: RuntimeStatus) -> bool:
    """Nothing of the pod runs; a pod of which the runtime knows nothing counts (PW-13)."""
    return not any(each.is_running for each in status.containers) and not any(
        each.is_ready for each in status.sandboxes
    )


class StatusCache(Protocol[S_co]):
    def get(self, uid: str) -> S_co:
        """What is known now. Raises whatever kept it from being known."""
        ...

    def get_newer_than(self, uid: str, seconds: float | None) -> S_co | Awaitable[S_co]:
        """What was learnt after that moment, in the workers' own time; waits until there is such. With None, what
        is known now."""
        ...


class SyncResult(msgspec.Struct, frozen=True):
    """What came of a sync: whether the pod has ended by itself, and what is to be done right after the step."""

    is_terminal: bool = False
    after: Callable[[], None] | None = None


class PodSteps(Protocol[P_contra, S_contra, R_contra]):
    """Each is called again until it does not raise. At most one of them runs for a pod; for different pods they run
    together. A step that is awaited is cancelled when its work is overtaken (the pod is to end, or sooner); it may
    clean up, or finish."""

    def sync_pod(
        self, type_: UpdateType, pod: P_contra, mirror: P_contra | None, status: S_contra
    ) -> SyncResult | Awaitable[SyncResult]:
        """Bring the pod to what it should be: start and restart containers."""
        ...

    def sync_terminating_pod(
        self, pod: P_contra, status: S_contra, grace_seconds: int | None, override: StatusOverride | None
    ) -> Awaitable[None] | None:
        """Stop all containers; when it does not raise, none is running. Without grace the pod's own counts."""
        ...

    def sync_terminating_runtime_pod(self, running: R_contra) -> Awaitable[None] | None:
        """Stop what runs of a pod that nobody knows any more."""
        ...

    def sync_terminated_pod(self, pod: P_contra, status: S_contra) -> Awaitable[None] | None:
        """Release what the pod held; when it does not raise, the pod is finished on this node."""
        ...


class EventRecorder(Protocol):
    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None: ...
