"""The view of a pod under a policy.

Labels, annotations, owners and container statuses are decoded and dropped at once. What remains are the facts that the
policy asks for, shared between similar pods, and the few times that are the pod's own. A view is made for one policy:
another policy needs the pods listed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any, ClassVar, cast

import msgspec

from podlife.podgc.keep_until import KEEP_UNTIL, kept_by, seconds_of
from podlife.podgc.policy.engine.matching import NO_OWNER, Matcher, SelectorBits
from podlife.podgc.views import (
    DISRUPTION_TARGET,
    Condition,
    ContainerStatus,
    Pod,
    PodMetadata,
    PodStatus,
    Terminated,
)

# Conditions whose last transition dates the end if no container does.
_ENDINGS = ("Ready", "ContainersReady", DISRUPTION_TARGET)


class _Owner(msgspec.Struct, gc=False):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(PodMetadata, rename="camel", gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None  # type: ignore[assignment]  # all of them, not only podlife's
    owner_references: tuple[_Owner, ...] = ()

    @property
    def controller(self) -> _Owner | None:
        return next((each for each in self.owner_references if each.controller), None)

    def lean(self) -> PodMetadata:
        return PodMetadata(
            self.name,
            self.namespace,
            self.uid,
            self.resource_version,
            self.generation,
            self.creation_timestamp,
            self.deletion_timestamp,
            self.deletion_grace_period_seconds,
            self.finalizers,
        )


class _Status(PodStatus, rename="camel", gc=False):
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    def __post_init__(self) -> None:
        """`lean` takes care of the conditions."""

    @property
    def ends(self) -> list[Terminated]:
        """The terminations of its containers."""
        containers = self.container_statuses + self.init_container_statuses
        return [container.end for container in containers if container.end is not None]

    def lean(self) -> PodStatus:
        return PodStatus(self.phase, self.reason, self.observed_generation, self.conditions)


class PolicyPod(Pod, gc=False, kw_only=True):
    matcher: ClassVar[Matcher]

    # As decoded; replaced by the base classes in `__post_init__`.
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)
    # Not API fields: what the policy asks for.
    facts: SelectorBits = SelectorBits(0, "")
    # The latest known end of any part of it, in seconds since 1970; 0 for none.
    ended_at: float = 0.0
    # The end of its keep-until protection, in seconds since 1970, as limited by the policy.
    keep_until: float = 0.0
    # The UID of its controller, if the policy groups by owner.
    owner: str = ""

    def __post_init__(self) -> None:
        metadata, status, matcher = self.metadata, self.status, self.matcher
        annotations = metadata.annotations or {}
        owner, ends = metadata.controller, status.ends
        self.facts = matcher.facts_of(
            metadata.labels or {},
            annotations,
            owner.kind if owner is not None else NO_OWNER,
            status.phase,
            status.reason,
            frozenset(end.exit_code for end in ends),
        )
        if owner is not None and matcher.asks_owner:
            self.owner = intern(owner.uid)
        if status.phase in ("Succeeded", "Failed"):
            self.ended_at = max((*_finished(ends), *_changed(status.conditions)), default=0.0)
            if not self.ended_at and status.start_time is not None:
                # Rejected by its node, which records only the start time, however long the pod was pending.
                self.ended_at = max(
                    status.start_time, metadata.deletion_timestamp or status.start_time
                ).timestamp()
        if KEEP_UNTIL in annotations:
            self.keep_until = self._kept(seconds_of(annotations[KEEP_UNTIL]))
        lean: Any = self
        lean.metadata, lean.status = metadata.lean(), status.lean()

    def _kept(self, until: float) -> float:
        """Apply the policy's limit for keep-until."""
        most = self.matcher.policy.protection.max_keep_until_seconds
        if most is None:
            return until
        return min(until, self.completed_at + most) if most else 0.0

    @property
    def completed_at(self) -> float:
        """When it ended, in seconds since 1970: the latest known time, to be safe. The node's clock may be years
        behind, so the end is never before the creation."""
        if self.ended_at:
            return max(self.ended_at, self.created_at)
        metadata = self.metadata
        times = (metadata.creation_timestamp, metadata.deletion_timestamp)
        return max((moment.timestamp() for moment in times if moment is not None), default=0.0)

    @property
    def created_at(self) -> float:
        created = self.metadata.creation_timestamp
        return 0.0 if created is None else created.timestamp()


@lru_cache(maxsize=4)
def view_for(matcher: Matcher) -> type[PolicyPod]:
    made: Any = msgspec.defstruct(
        "PolicyPod", [], bases=(PolicyPod,), namespace={"matcher": matcher}, gc=False, kw_only=True
    )
    return cast(type[PolicyPod], made)


def as_policy_pod(pod: Pod) -> PolicyPod:
    """Raises TypeError for a pod that was decoded without a policy."""
    if not isinstance(pod, PolicyPod):
        raise TypeError(f"pod {pod.key} was decoded without a policy")
    return pod


def protection_by(namespace: SelectorBits, pod: PolicyPod, now: float) -> str:
    """What protects the pod at this time, or ""."""
    return namespace.protected_by or pod.facts.protected_by or kept_by(pod.keep_until, now)


def _finished(ends: Iterable[Terminated]) -> Iterable[float]:
    for end in ends:
        if end.finished_at is not None:
            yield end.finished_at.timestamp()


def _changed(conditions: Iterable[Condition]) -> Iterable[float]:
    for each in conditions:
        if each.type in _ENDINGS and each.last_transition_time:
            yield seconds_of(each.last_transition_time)
