"""What is decoded of a pod when a policy is in force, and what is kept of it.

Labels, annotations, owners and container statuses are read, and go again at once, with all that held them: what stays
is the facts that the policy asks for, which pods that are alike share, and the few moments that are the pod's own. A
pod's view is made for one policy: another one needs the pods read anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any, ClassVar, cast

import msgspec

from podlife.podgc.keep_until import KEEP_UNTIL, kept_by, seconds_of
from podlife.podgc.policy.engine.matching import (
    NO_OWNER,
    Facts,
    Fit,
    Matcher,
)
from podlife.podgc.views import DISRUPTION_TARGET, Condition, Pod, PodMetadata, PodStatus

__all__ = ["GovernedPod", "protection_by", "view_for"]

# Conditions whose change tells of the end, where no container does.
_ENDINGS = ("Ready", "ContainersReady", DISRUPTION_TARGET)


class _Owner(msgspec.Struct, gc=False):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class _Terminated(msgspec.Struct, rename="camel", gc=False):
    exit_code: int = 0
    finished_at: datetime | None = None


class _State(msgspec.Struct, gc=False):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, rename="camel", gc=False):
    state: _State | None = None
    last_state: _State | None = None

    @property
    def end(self) -> _Terminated | None:
        """How it ended its last time."""
        for state in (self.state, self.last_state):
            if state is not None and state.terminated is not None:
                return state.terminated
        return None


class _Metadata(PodMetadata, rename="camel", gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None  # type: ignore[assignment]  # all of them, not only ours
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
    container_statuses: tuple[_Container, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()

    def __post_init__(self) -> None:
        """The lean one looks after the conditions."""

    @property
    def ends(self) -> list[_Terminated]:
        """How its containers ended, as far as they did."""
        containers = self.container_statuses + self.init_container_statuses
        return [container.end for container in containers if container.end is not None]

    def lean(self) -> PodStatus:
        return PodStatus(self.phase, self.reason, self.observed_generation, self.conditions)


class GovernedPod(Pod, gc=False, kw_only=True):
    matcher: ClassVar[Matcher]

    # As they are read; what the pod has once it is made are the plain ones.
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)
    # No fields of the API: what the policy wants to know.
    facts: Facts = Facts(0, "")
    # The latest moment at which something of it is known to have ended, in seconds since 1970; 0 for none.
    ended_at: float = 0.0
    # Until when its own annotation protects it, in seconds since 1970, as far as the policy lets it.
    keep_until: float = 0.0
    # The UID of the controller that owns it, where the policy counts by owners.
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
                # Refused by its node, which writes down nothing else: that was then, however long it had been pending.
                self.ended_at = max(
                    status.start_time, metadata.deletion_timestamp or status.start_time
                ).timestamp()
        if KEEP_UNTIL in annotations:
            self.keep_until = self._kept(seconds_of(annotations[KEEP_UNTIL]))
        lean: Any = self
        lean.metadata, lean.status = metadata.lean(), status.lean()

    def _kept(self, until: float) -> float:
        """The policy may limit how long the annotation protects a pod."""
        most = self.matcher.policy.protection.max_keep_until_seconds
        if most is None:
            return until
        return min(until, self.completed_at + most) if most else 0.0

    @property
    def completed_at(self) -> float:
        """When it ended, in seconds since 1970: the latest moment that is known, which is the safe one. Its node has
        a clock of its own, which may be years behind: no pod has ended before it was made."""
        if self.ended_at:
            return max(self.ended_at, self.created_at)
        metadata = self.metadata
        moments = (metadata.creation_timestamp, metadata.deletion_timestamp)
        return max((moment.timestamp() for moment in moments if moment is not None), default=0.0)

    @property
    def created_at(self) -> float:
        created = self.metadata.creation_timestamp
        return 0.0 if created is None else created.timestamp()


@lru_cache(maxsize=4)
def view_for(matcher: Matcher) -> type[GovernedPod]:
    """The view of pods that this policy decides about."""
    made: Any = msgspec.defstruct(
        "GovernedPod", [], bases=(GovernedPod,), namespace={"matcher": matcher}, gc=False, kw_only=True
    )
    return cast(type[GovernedPod], made)


def protection_by(fit: Fit, pod: GovernedPod, now: float) -> str:
    """What protects the pod at this time, or ""."""
    if fit.protected_by or pod.facts.protected_by:
        return fit.protected_by or pod.facts.protected_by
    # Before an index is told the time every moment is still to come, but for one that there is none of.
    return kept_by(pod.keep_until, now)


def _finished(ends: Iterable[_Terminated]) -> Iterable[float]:
    for end in ends:
        if end.finished_at is not None:
            yield end.finished_at.timestamp()


def _changed(conditions: Iterable[Condition]) -> Iterable[float]:
    for each in conditions:
        if each.type in _ENDINGS and each.last_transition_time:
            yield seconds_of(each.last_transition_time)
