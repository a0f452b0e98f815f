"""What a policy says, as values that cannot change. Nothing here reads a file or decides about a pod.

A pod has one rule: the first whose selector takes it. What that rule excludes is its own business too, and is left
alone by the rules after it. So nothing that is excluded or protected can cost another pod its life: each rule's limits
count the pods that are its own, upstream's threshold counts those that no rule has. Protected pods are nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import time
from enum import StrEnum
from typing import TypeVar

from podlife.api.selectors import LabelSelector
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.settings import Reason

__all__ = [
    "KEEP_UNTIL",
    "OWNER_HAS_SEEN",
    "STOP",
    "Guards",
    "Keep",
    "Order",
    "OwnerWait",
    "Per",
    "Policy",
    "Protection",
    "Rule",
    "Selector",
    "Window",
]

OWNER_HAS_SEEN = "podlife.dev/owner-has-seen"
"""On a pod: its owner says that it has taken note of the end. Any value but "false"."""

STOP = "podlife.dev/gc-stop"
"""On a namespace: nothing in it is collected; on kube-system: nothing anywhere. The value says why."""


class Order(StrEnum):
    COMPLETION = "completion"
    CREATION = "creation"


class Per(StrEnum):
    """What a `keep` counts apart."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    # The controller that the pod names; pods without one count together, by namespace.
    OWNER = "owner"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Selector:
    """Which pods; all that is said must hold, and what is left empty holds for every pod.

    Names of namespaces, nodes, reasons and owner kinds may have `*` and `?` in them.
    """

    namespaces: tuple[str, ...] = ()
    namespace_labels: LabelSelector | None = None
    labels: LabelSelector | None = None
    # "Job", "ReplicaSet" …; "none" is a pod that no controller owns.
    owner_kinds: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    # The pod's own reason: Evicted, NodeAffinity, Shutdown, OutOfcpu, Preempting …
    reasons: tuple[str, ...] = ()
    # One of its containers ended with one of these, its last time.
    exit_codes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Keep:
    """The youngest so many of each group stay."""

    count: int
    per: Per = Per.CLUSTER
    order_by: Order = Order.COMPLETION


@dataclass(frozen=True, slots=True)
class OwnerWait:
    """A finished pod stays until its owner has seen the end, and no longer than this after it."""

    at_most_seconds: float


@dataclass(frozen=True, slots=True)
class Rule:
    """`keep` and `ttl_seconds` are about pods that have ended, `max_terminating_seconds` about pods that were deleted
    and are still there so long after their grace. With both `keep` and a time to live a pod goes when it is beyond
    both, or with `is_either` beyond one of them."""

    name: str
    selector: Selector = field(default_factory=Selector)
    exclude: tuple[Selector, ...] = ()
    keep: Keep | None = None
    ttl_seconds: float | None = None
    is_either: bool = False
    max_terminating_seconds: float | None = None
    wait_for_owner: OwnerWait | None = None
    is_on: bool = True
    # Where it stands in the file, for whoever is told of it.
    line: int = 0


@dataclass(frozen=True, slots=True)
class Protection:
    """Pods that nothing collects, whatever rule or reason there is; the annotation KEEP_UNTIL protects besides."""

    namespaces: tuple[str, ...] = ()
    labels: tuple[LabelSelector, ...] = ()
    # Pods that have one of these annotations; with a value only where it is this one.
    annotations: tuple[tuple[str, str | None], ...] = ()
    # Maximum time after a pod's end that KEEP_UNTIL may protect it; 0 ignores the annotation, None is no bound.
    max_keep_until_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """When deletions may be made, in a time zone: on these days (0 is Monday), from a time to another; where the end
    is not after the start it lies on the next day."""

    days: frozenset[int] = frozenset(range(7))
    start: time = time(0)
    end: time = time(0)
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Guards:
    """What is never exceeded, whatever the rules say; None is no bound."""

    per_minute: int | None = None
    per_pass: int | None = None
    # Of all pods there are, 0 to 1. Where a pass would take more, it takes none there until a person says so.
    share_of_namespace: float | None = None
    share_of_cluster: float | None = None
    # Up to so many pods a share is never too much: one of one is everything.
    share_at_least: int = 10
    # None at all is always.
    windows: tuple[Window, ...] = ()
    is_observing: bool = False

    @property
    def has_shares(self) -> bool:
        return self.share_of_namespace is not None or self.share_of_cluster is not None

    def tightened_by(self, other: Guards) -> Guards:
        """The lower of each pair of bounds. Raises ValueError if both have windows and they differ: `windows` cannot
        express their intersection."""
        if self.windows and other.windows and self.windows != other.windows:
            raise ValueError("windows are set in the policy and beside it: remove one of them")
        lenient = [each.share_at_least for each in (self, other) if each.has_shares]
        return Guards(
            per_minute=_lower(self.per_minute, other.per_minute),
            per_pass=_lower(self.per_pass, other.per_pass),
            share_of_namespace=_lower(self.share_of_namespace, other.share_of_namespace),
            share_of_cluster=_lower(self.share_of_cluster, other.share_of_cluster),
            share_at_least=min(lenient, default=self.share_at_least),
            windows=self.windows or other.windows,
            is_observing=self.is_observing or other.is_observing,
        )


N = TypeVar("N", int, float)


def _lower(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


@dataclass(frozen=True, slots=True)
class Policy:
    """With nothing said it is upstream's."""

    rules: tuple[Rule, ...] = ()
    protection: Protection = field(default_factory=Protection)
    guards: Guards = field(default_factory=Guards)
    # Upstream's four reasons and their numbers; None leaves them to the flags.
    collect: frozenset[Reason] | None = None
    threshold: int | None = None
    quarantine_seconds: float | None = None
