"""The policy, as immutable values.

A pod has one rule: the first whose selector matches it. A pod that its rule excludes is left alone by later rules too.
Each rule's limits count only its own pods, upstream's threshold counts the pods that no rule selects, and protected
pods are not counted at all. So excluding or protecting a pod never causes another pod to be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import time
from enum import StrEnum
from typing import TypeVar

from podlife.api.selectors import LabelSelector
from podlife.podgc.reasons import Reason

OWNER_HAS_SEEN = "podlife.dev/owner-has-seen"
"""On a pod: set by its owner when it has observed the end. Any value but "false"."""

STOP = "podlife.dev/gc-stop"
"""On a namespace: nothing in it is collected; on kube-system: nothing in the cluster. The value is the reason."""


class KeepOrder(StrEnum):
    COMPLETION = "completion"
    CREATION = "creation"


class Per(StrEnum):
    """The groups of a `keep`."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    # The pod's controller; pods without one are grouped by namespace.
    OWNER = "owner"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Selector:
    """Matches pods that meet all fields; an empty field matches every pod.

    Namespaces, nodes, reasons and owner kinds may contain the wildcards `*` and `?`.
    """

    namespaces: tuple[str, ...] = ()
    namespace_labels: LabelSelector | None = None
    labels: LabelSelector | None = None
    # "Job", "ReplicaSet" …; "none" is a pod without a controller.
    owner_kinds: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    # The pod's status.reason: Evicted, NodeAffinity, Shutdown, OutOfcpu, Preempting …
    reasons: tuple[str, ...] = ()
    # Matches if the last termination of a container has one of these exit codes.
    exit_codes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the `count` youngest pods of each group."""

    count: int
    per: Per = Per.CLUSTER
    order_by: KeepOrder = KeepOrder.COMPLETION


@dataclass(frozen=True, slots=True)
class OwnerWait:
    """A finished pod stays until its owner has observed its end, at most this long after it."""

    at_most_seconds: float


@dataclass(frozen=True, slots=True)
class Rule:
    """`keep` and `ttl_seconds` apply to pods that have ended, `max_terminating_seconds` to pods that still exist so
    long after their grace period. With both `keep` and `ttl_seconds` a pod must exceed both, or with `is_either` one of
    them."""

    name: str
    selector: Selector = field(default_factory=Selector)
    exclude: tuple[Selector, ...] = ()
    keep: Keep | None = None
    ttl_seconds: float | None = None
    is_either: bool = False
    max_terminating_seconds: float | None = None
    wait_for_owner: OwnerWait | None = None
    is_on: bool = True
    # Its line in the file, for messages.
    line: int = 0


@dataclass(frozen=True, slots=True)
class Protection:
    """Pods that are not collected for any reason. The annotation KEEP_UNTIL protects as well."""

    namespaces: tuple[str, ...] = ()
    labels: tuple[LabelSelector, ...] = ()
    # Pods with one of these annotations; if a value is given, with this value.
    annotations: tuple[tuple[str, str | None], ...] = ()
    # Maximum time that KEEP_UNTIL may protect a pod after its end; 0 ignores the annotation, None means no limit.
    max_keep_until_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """When pods may be deleted, in a time zone: on these days (0 is Monday), from `start` to `end`; an end that is not
    after the start is on the next day."""

    days: frozenset[int] = frozenset(range(7))
    start: time = time(0)
    end: time = time(0)
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits that hold whatever the rules say; None means no limit."""

    per_minute: int | None = None
    per_pass: int | None = None
    # Fraction of all pods. If a pass would delete more, it deletes none there until a person allows it.
    share_of_namespace: float | None = None
    share_of_cluster: float | None = None
    # Shares do not apply up to this number of pods: one of one would be 100%.
    share_at_least: int = 10
    # Without windows, deletions are always allowed.
    windows: tuple[Window, ...] = ()
    is_observing: bool = False

    @property
    def has_shares(self) -> bool:
        return self.share_of_namespace is not None or self.share_of_cluster is not None

    def tightened_by(self, other: Guards) -> Guards:
        """The lower of each pair of bounds. Raises ValueError if both have windows and they differ: `windows` cannot
        express their intersection."""
        if self.windows and other.windows and self.windows != other.windows:
            raise ValueError("windows are set both in the policy and in the guards: remove one of them")
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
    """The default is upstream's behaviour."""

    rules: tuple[Rule, ...] = ()
    protection: Protection = field(default_factory=Protection)
    guards: Guards = field(default_factory=Guards)
    # Upstream's four reasons and their parameters; None leaves them to the flags.
    collect: frozenset[Reason] | None = None
    threshold: int | None = None
    quarantine_seconds: float | None = None
