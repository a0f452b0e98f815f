"""What the workers need of others: the steps that do the work, and the cache of what the runtime has.

A step, and the cache, may answer at once or with something to wait for. One that has nothing to wait for costs no task:
use `def` where a step is trivial, `async def` where it is not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.podworkers.updates import StatusOverride, UpdateType


class StatusCache(Protocol):
    def get(self, uid: str) -> ObservedPod:
        """What is known now. Raises whatever kept it from being known."""
        ...

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        """What was learnt after that moment, in the workers' own time; waits until there is such. With None, what
        is known now."""
        ...


class SyncResult(msgspec.Struct, frozen=True):
    """What came of a sync: whether the pod has ended by itself, and what is to be done right after the step."""

    is_terminal: bool = False
    after: Callable[[], None] | None = None


class PodSteps(Protocol):
    """Each is called again until it does not raise. At most one of them runs for a pod; for different pods they run
    together. A step that is awaited is cancelled when its work is overtaken (the pod is to end, or sooner); it may
    clean up, or finish."""

    def sync_pod(
        self, type_: UpdateType, pod: NodePod, mirror: NodePod | None, status: ObservedPod
    ) -> SyncResult | Awaitable[SyncResult]:
        """Bring the pod to what it should be: start and restart containers."""
        ...

    def sync_terminating_pod(
        self, pod: NodePod, status: ObservedPod, grace_seconds: int | None, override: StatusOverride | None
    ) -> Awaitable[None] | None:
        """Stop all containers; when it does not raise, none is running. Without grace the pod's own counts."""
        ...

    def sync_terminating_runtime_pod(self, running: RunningPod) -> Awaitable[None] | None:
        """Stop what runs of a pod that nobody knows any more."""
        ...

    def sync_terminated_pod(self, pod: NodePod, status: ObservedPod) -> Awaitable[None] | None:
        """Release what the pod held; when it does not raise, the pod is finished on this node."""
        ...
