"""The plan of a collection: which pods to remove, how and why, and what guards and waits hold back. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from podlife.podgc.classifier import RuleVerdict
from podlife.podgc.namespace_annotations import GuardAnnotations
from podlife.podgc.reasons import Cause, Reason, RuleReason
from podlife.podgc.views import Pod

CLUSTER = ""
"""The place that stands for the whole cluster; other places are namespaces."""


class Action(StrEnum):
    """How a victim is removed (GC-90, GC-91)."""

    DELETE = "delete"
    MARK_AND_DELETE = "mark-failed-and-delete"
    # Already deleted, and held by a finalizer whose owner may be waiting for the phase.
    MARK = "mark-failed"


class Victim(msgspec.Struct, frozen=True):
    """A Struct because a plan may have many thousands: five times as fast to create as a frozen dataclass."""

    pod: Pod
    reason: Cause
    action: Action
    why: str
    # The policy rule that selected it; "" without a policy.
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """Pods of a missing node: collected in `seconds`, if the server does not know the node then."""

    node: str
    pods: tuple[Pod, ...]
    reason: Reason
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Upcoming:
    """How many pods a rule will release for one reason if nothing changes, and the next of them."""

    rule: str
    reason: RuleReason
    count: int
    # Time until the first of them.
    seconds: float
    next: tuple[RuleVerdict, ...]


@dataclass(frozen=True, slots=True)
class WaitingVictim:
    """A victim that stays until its owner has observed its end, at most until a time."""

    victim: Victim
    what: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Census:
    """The number of pods by namespace, and the annotations of namespaces: the input of guards."""

    pods: Mapping[str, int] = field(default_factory=dict)
    annotations: GuardAnnotations = field(default_factory=GuardAnnotations)


class Guard(StrEnum):
    """Named as in a policy; a stop as in its annotation."""

    STOP = "gc-stop"
    WINDOW = "windows"
    CLUSTER_SHARE = "shareOfCluster"
    NAMESPACE_SHARE = "shareOfNamespace"
    PER_PASS = "perPass"  # noqa: S105 - not a password
    OBSERVING = "observeOnly"
    PER_MINUTE = "perMinute"


_REMEDIES = {
    Guard.WINDOW: "the next window",
    Guard.PER_PASS: "the next pass; a sweep is one",
    Guard.OBSERVING: "guards.observeOnly: false in the policy, and no --observe",
    Guard.PER_MINUTE: "time; `podlife gc run` continues on its own",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """`place` is the namespace concerned, or the cluster; `until` is when the refusal expires, if known;
    `lifted_by` is the command that lifts it, if there is one."""

    guard: Guard
    why: str
    place: str = CLUSTER
    until: datetime | None = None
    lifted_by: str = ""

    @property
    def remedy(self) -> str:
        """What a user can do about it."""
        if self.guard in (Guard.CLUSTER_SHARE, Guard.NAMESPACE_SHARE):
            return f"`{self.lifted_by}`, or once `podlife gc sweep --force`"
        return f"`{self.lifted_by}`" if self.lifted_by else _REMEDIES.get(self.guard, "")


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Victims that one guard holds back in one place."""

    refusal: Refusal
    victims: tuple[Victim, ...]

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(victim.pod for victim in self.victims)

    @property
    def is_for_a_minute(self) -> bool:
        """Whether time alone lifts it, soon enough for a sweep to wait."""
        return self.refusal.guard is Guard.PER_MINUTE


class NodeState(StrEnum):
    THERE = "there"
    GONE = "gone"
    # The pod was never scheduled.
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finalizer:
    """`manager` is the field manager that set it and `set_at` its last write, if the server recorded them."""

    name: str
    manager: str = ""
    set_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldPod:
    namespace: str
    name: str
    uid: str
    node: str
    # The end of its grace period: from then on only finalizers hold it.
    since: datetime
    finalizers: tuple[Finalizer, ...]
    # "Job/sum"; "" without a controller.
    owner: str = ""
    node_state: NodeState = NodeState.UNKNOWN

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Plan:
    victims: tuple[Victim, ...] = ()
    later: tuple[Later, ...] = ()
    # Already deleted and held by finalizers: nothing left to do for a collector.
    held: tuple[Pod, ...] = ()
    upcoming: tuple[Upcoming, ...] = ()
    # Number of terminated pods that the threshold counts.
    terminated: int = 0
    # What guards hold back, and the counts that they use.
    held_back: tuple[HeldBack, ...] = ()
    census: Census | None = None
    # What waits for its owner.
    waiting: tuple[WaitingVictim, ...] = ()
    # Held pods whose finalizers a session would remove.
    finalizers: tuple[HeldPod, ...] = ()
