"""Classification of pods: which ones the terminated-pod threshold counts, what protects them, which rule applies.

`PodIndex` holds the pods and notifies its classifier of every change. `UpstreamClassifier` follows
kube-controller-manager; `PolicyClassifier` (`policy.engine.classifier`) adds the rules and protections of a policy.
Classifiers read no clock: the time of day is an event like any other (`pass_time`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sortedcontainers import SortedList

from podlife.podgc.keep_until import kept_by
from podlife.podgc.reasons import RuleReason
from podlife.podgc.views import Namespace, Pod

VictimOrder = tuple[int, datetime, str, str, str]
"""Sort key of a terminated pod among the victims, ending with its UID and its node's name."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def order_of(pod: Pod) -> VictimOrder:
    """Evicted pods first, then the oldest, then by name (GC-12). The UID only separates pods of the same name."""
    metadata = pod.metadata
    created = metadata.creation_timestamp or _NEVER
    return (0 if pod.is_evicted else 1, created, metadata.name, metadata.uid, pod.spec.node_name)


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """A policy rule releases a pod: from when on (seconds since 1970), and why."""

    pod: Pod
    rule: str
    reason: RuleReason
    due_at: float
    why: str


class Classifier(Protocol):
    @property
    def terminated(self) -> SortedList[VictimOrder]:
        """The pods that the threshold counts, in the order in which they are removed."""

    @property
    def leaving(self) -> set[str]:
        """UIDs of pods that the collector is removing: a phase that it writes itself must not count (GC-11)."""

    @property
    def now(self) -> float:
        """The last time of day passed to `pass_time`, in seconds since 1970."""

    @property
    def next_due_at(self) -> float:
        """When time alone changes something next, in seconds since 1970."""

    def pass_time(self, now: datetime) -> None: ...

    def put_namespace(self, namespace: Namespace) -> None: ...

    def remove_namespace(self, namespace: Namespace) -> None: ...

    def add(self, pod: Pod) -> None: ...

    def discard(self, pod: Pod) -> None: ...

    def counts(self, pod: Pod) -> bool:
        """Whether the threshold counts the pod."""

    def protection_of(self, pod: Pod) -> str:
        """What keeps the pod from being collected for any reason, or ""."""

    def rule_of(self, pod: Pod) -> tuple[str, str]:
        """The names of the pod's rule and of the exclude that it matches there; "" for none."""

    def verdicts(self, skip: Container[str] = ()) -> Iterable[RuleVerdict]:
        """Pods that rules release now, except for these UIDs, in the order in which they became due."""

    def verdict_on(self, pod: Pod) -> RuleVerdict | None:
        """The verdict on one pod, if it is due."""

    def verdict_to_come(self, pod: Pod) -> RuleVerdict | None:
        """The verdict on one pod, due or not, if nothing changes."""

    def verdicts_to_come(self) -> Iterable[RuleVerdict]:
        """Pods that rules release later if nothing changes."""


class UpstreamClassifier:
    """Every terminated pod counts, only its own keep-until annotation protects a pod, and there are no rules."""

    def __init__(self) -> None:
        self.terminated: SortedList[VictimOrder] = SortedList()
        self.leaving: set[str] = set()
        # Before the first `pass_time` every keep-until is in the future.
        self.now = 0.0

    @property
    def next_due_at(self) -> float:
        return math.inf

    def pass_time(self, now: datetime) -> None:
        self.now = now.timestamp()

    def put_namespace(self, namespace: Namespace) -> None:
        pass

    def remove_namespace(self, namespace: Namespace) -> None:
        pass

    def add(self, pod: Pod) -> None:
        if self.counts(pod):
            self.terminated.add(order_of(pod))

    def discard(self, pod: Pod) -> None:
        if pod.is_terminated:
            self.terminated.discard(order_of(pod))

    def counts(self, pod: Pod) -> bool:
        return pod.is_terminated and pod.metadata.uid not in self.leaving

    def protection_of(self, pod: Pod) -> str:
        return kept_by(pod.kept_until, self.now)

    def rule_of(self, pod: Pod) -> tuple[str, str]:
        return "", ""

    def verdicts(self, skip: Container[str] = ()) -> Iterable[RuleVerdict]:
        return ()

    def verdict_on(self, pod: Pod) -> RuleVerdict | None:
        return None

    def verdict_to_come(self, pod: Pod) -> RuleVerdict | None:
        return None

    def verdicts_to_come(self) -> Iterable[RuleVerdict]:
        return ()
