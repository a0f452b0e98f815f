"""What there is, in the order in which the policy asks for it. Kept up to date by events, never scanned.

It guarantees that every event costs O(log n) at most, that nothing else in it grows with time, and that `excess`,
`missing`, `orphans` and the rest can be read at once. It decides nothing and knows no clock: moments are the event
loop's seconds, given with each event. A pod that is settled (at grace 0, held by a finalizer, its phase final) is in
no way of collection any more: it is kept apart, to be reported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sortedcontainers import SortedList

from podlife.api.views import Node
from podlife.podgc.keep_until import kept_by
from podlife.podgc.settings import RuleReason
from podlife.podgc.views import Namespace, Pod

__all__ = ["Absence", "PodIndex", "Verdict", "is_out_of_service", "is_ready", "order_of"]

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"

Order = tuple[int, datetime, str, str, str]
"""Where a terminated pod stands among the victims, and where to find it: its UID and its node's name."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def order_of(pod: Pod) -> Order:
    """Evicted first, then the oldest, then by name (GC-12). The UID only keeps namesakes apart."""
    metadata = pod.metadata
    created = metadata.creation_timestamp or _NEVER
    return (0 if pod.is_evicted else 1, created, metadata.name, metadata.uid, pod.spec.node_name)


def is_ready(node: Node) -> bool:
    """The first Ready condition counts, and only True is ready (GC-31)."""
    return next((each.status for each in node.status.conditions if each.type == "Ready"), "") == "True"


def is_out_of_service(node: Node) -> bool:
    """Not ready and tainted so; value and effect of the taint do not matter (GC-30, GC-42)."""
    return not is_ready(node) and any(taint.key == OUT_OF_SERVICE_TAINT for taint in node.spec.taints)


@dataclass(slots=True)
class Absence:
    """A node that pods name and that is not there: since when, and when it was last looked for at the server."""

    seen_at: float
    checked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule of a policy says of a pod: that it may go, from when on (seconds since 1970), and why."""

    pod: Pod
    rule: str
    reason: RuleReason
    due_at: float
    why: str


class PodIndex:
    def __init__(self, *, marks_failed: bool = True) -> None:
        # Without the marking there is nothing to do for a held pod, whatever its phase.
        self._marks_failed = marks_failed
        self._pods: dict[str, dict[str, Pod]] = {}
        self._terminating: dict[str, dict[str, Pod]] = {}
        self._terminated: SortedList[Order] = SortedList()
        self._settled: dict[str, Pod] = {}
        self._leaving: set[str] = set()
        self._nodes: set[str] = set()
        self._out_of_service: set[str] = set()
        self._missing: dict[str, Absence] = {}
        self._inherited: dict[str, Absence] = {}
        self._orphans: dict[str, set[str]] = {}
        self._count = 0
        self._counts: dict[str, int] = {}
        self._namespaces: dict[str, Namespace] = {}
        # The time, in seconds since 1970; before it is told every moment is still to come.
        self._now = 0.0

    # Events

    def add_pod(self, pod: Pod, now: float) -> bool:
        """Says, as the other events do, whether anything may have become collectable, now or at a later time."""
        self._insert(pod)
        return self._review(pod.spec.node_name, pod.metadata.uid, now) or _is_candidate(pod)

    def update_pod(self, old: Pod, new: Pod, now: float) -> bool:
        self._discard(old)
        self._insert(new)
        # The old place comes second and only if it is another: a node must not lose its quarantine in between.
        is_news = self._review(new.spec.node_name, new.metadata.uid, now)
        if (old.spec.node_name, old.metadata.uid) != (new.spec.node_name, new.metadata.uid):
            self._review(old.spec.node_name, old.metadata.uid, now)
        return is_news or _is_candidate(new)

    def remove_pod(self, pod: Pod, now: float) -> bool:
        self._discard(pod)
        self._review(pod.spec.node_name, pod.metadata.uid, now)
        return False

    def put_node(self, node: Node) -> bool:
        """A node that is new or has changed."""
        name = node.metadata.name
        self._nodes.add(name)
        self._missing.pop(name, None)
        self._inherited.pop(name, None)
        self._orphans.pop(name, None)
        if is_out_of_service(node):
            self._out_of_service.add(name)
            return name in self._terminating
        self._out_of_service.discard(name)
        return False

    def remove_node(self, node: Node, now: float) -> bool:
        name = node.metadata.name
        self._nodes.discard(name)
        self._out_of_service.discard(name)
        return self._review(name, "", now)

    def put_namespace(self, namespace: Namespace) -> bool:
        """One that is new or has changed; told only where somebody asks for namespaces."""
        self._namespaces[namespace.metadata.name] = namespace
        return True

    def remove_namespace(self, namespace: Namespace) -> None:
        self._namespaces.pop(namespace.metadata.name, None)

    # What was found out about a missing node

    def begin_quarantines(self, now: float) -> None:
        """Nothing was known before: whatever is missing is seen for the first time now."""
        self._orphans.clear()
        self._missing = {name: Absence(now) for name in self._missing}

    def inherit(self, before: PodIndex) -> None:
        """Take over from the index of the policy that was in force: who is being removed, and since when which node
        is missed, so that no quarantine begins anew. Whether such a node is gone is asked again."""
        self._leaving = before._leaving
        self._inherited = {name: Absence(absence.seen_at) for name, absence in before._missing.items()}

    def end_inheritance(self) -> None:
        """All pods are there: a node that none of them is on is missed anew."""
        self._inherited.clear()

    def confirm_missing(self, name: str, now: float) -> bool:
        """The server does not know the node: the pods that are on it now are orphans (GC-52). Those that come later
        wait for the next look."""
        absence = self._missing.get(name)
        if absence is None:
            return False
        absence.checked_at = now
        self._orphans[name] = set(self._pods[name])
        return True

    def doubt_missing(self, name: str, now: float) -> None:
        """The server knows the node, or could not be asked: nobody is touched, a new quarantine begins (GC-53)."""
        self._orphans.pop(name, None)
        if (absence := self._missing.get(name)) is not None:
            absence.checked_at = now

    # What is being done to a pod

    def begin_removal(self, pod: Pod) -> None:
        """Whatever becomes of its phase from here on is our own doing and does not count for the threshold (GC-11):
        if it did, each pod that is marked Failed on its way out would cost another one its life."""
        self._leaving.add(pod.metadata.uid)

    def end_removal(self, node: str, uid: str) -> None:
        """It is gone, or it stays and is a pod like others again."""
        if uid not in self._leaving:
            return
        self._leaving.discard(uid)
        pod = self.pod(node, uid)
        if pod is not None:
            self._uncount(pod)
            self._count_in(pod)

    # Questions

    def __len__(self) -> int:
        """How many pods there are."""
        return self._count

    @property
    def counts(self) -> Mapping[str, int]:
        """How many pods there are, by namespace."""
        return self._counts

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        return self._namespaces

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def has_node(self, name: str) -> bool:
        return name in self._nodes

    @property
    def terminating_count(self) -> int:
        return sum(len(pods) for pods in self._terminating.values())

    def excess(self, threshold: int) -> int:
        """How many terminated pods are too many (GC-11). Settled ones do not count (GC-14): if they did, each pod
        that a finalizer holds for a moment would cost another one its life in its place."""
        return max(0, len(self._terminated) - threshold)

    @property
    def terminated_count(self) -> int:
        """Without those that are settled."""
        return len(self._terminated)

    def first_terminated(self, count: int) -> Iterable[Pod]:
        """In the order of victims."""
        for *_, uid, node in self._terminated.islice(0, count):
            yield self._pods[node][uid]

    def is_among_first(self, pod: Pod, count: int) -> bool:
        if count <= 0 or not pod.is_terminated or pod.metadata.uid in self._leaving:
            return False
        return order_of(pod) <= self._terminated[count - 1]

    def pod(self, node: str, uid: str) -> Pod | None:
        """The pod, unless it is gone or settled."""
        return self._pods.get(node, _NO_PODS).get(uid)

    # Questions to a policy: without one only its own annotation spares a pod, and all is decided upstream's way.

    def pass_time(self, now: datetime) -> None:
        """What time it is from now on, for what is decided by the time of day."""
        self._now = now.timestamp()

    def is_spared(self, pod: Pod) -> bool:
        """Whether no reason whatever is enough to collect it."""
        return pod.kept_until > self._now

    def protection_of(self, pod: Pod) -> str:
        """What spares it, in words."""
        return kept_by(pod.kept_until, self._now)

    def verdicts(self, skip: Container[str] = ()) -> Iterable[Verdict]:
        """What the rules of a policy let go now but for these UIDs, whatever upstream's reasons say, the first due
        first."""
        return ()

    def verdict_on(self, pod: Pod) -> Verdict | None:
        return None

    def verdict_to_come(self, pod: Pod) -> Verdict | None:
        """What the rules will say of it if nothing changes."""
        return None

    def verdicts_to_come(self) -> Iterable[Verdict]:
        return ()

    def rule_of(self, pod: Pod) -> tuple[str, str]:
        """The names of its rule and of what excludes it there."""
        return "", ""

    @property
    def told_at(self) -> float:
        """The time of day it was told last, in seconds since 1970."""
        return 0.0

    @property
    def next_due_at(self) -> float:
        """When time alone changes something next, in seconds since 1970."""
        return math.inf

    def pods_on(self, node: str) -> Collection[Pod]:
        """Without those that are settled."""
        return self._pods.get(node, _NO_PODS).values()

    def terminating_on(self, node: str) -> Collection[Pod]:
        """With an empty name, those that were never scheduled."""
        return self._terminating.get(node, _NO_PODS).values()

    @property
    def out_of_service(self) -> Collection[str]:
        return self._out_of_service

    @property
    def missing(self) -> dict[str, Absence]:
        """Nodes that pods are on and that are not there, in the order in which they were missed."""
        return self._missing

    @property
    def orphans(self) -> dict[str, set[str]]:
        """UIDs of the pods whose node the server does not know, by its name."""
        return self._orphans

    @property
    def settled(self) -> Collection[Pod]:
        return self._settled.values()

    def is_settled(self, pod: Pod) -> bool:
        return pod.is_held and (pod.has_ended or not self._marks_failed)

    # Keeping it

    def _insert(self, pod: Pod) -> None:
        self._tally(pod.metadata.namespace, 1)
        uid, node = pod.metadata.uid, pod.spec.node_name
        if self.is_settled(pod):
            self._settled[uid] = pod
            return
        self._pods.setdefault(node, {})[uid] = pod
        if pod.is_terminating:
            self._terminating.setdefault(node, {})[uid] = pod
        self._count_in(pod)

    def _discard(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        if self._settled.pop(uid, None) is not None:
            self._tally(pod.metadata.namespace, -1)
            return
        known = _take(self._pods, node, uid)
        if known is None and node:
            # Its last state may name a node that no event before had told of.
            node, known = "", _take(self._pods, "", uid)
        if known is None:
            return
        self._tally(pod.metadata.namespace, -1)
        _take(self._terminating, node, uid)
        self._uncount(known)

    def _count_in(self, pod: Pod) -> None:
        if pod.is_terminated and pod.metadata.uid not in self._leaving:
            self._terminated.add(order_of(pod))

    def _uncount(self, pod: Pod) -> None:
        if pod.is_terminated:
            self._terminated.discard(order_of(pod))

    def _tally(self, namespace: str, change: int) -> None:
        self._count += change
        number = self._counts.get(namespace, 0) + change
        if number:
            self._counts[namespace] = number
        else:
            del self._counts[namespace]

    def _review(self, node: str, uid: str, now: float) -> bool:
        """After a change to a pod of that node, or to the node; says whether the node is missed from now on."""
        if not node or node in self._nodes:
            return False
        pods = self._pods.get(node, _NO_PODS)
        if uid not in pods and (orphans := self._orphans.get(node)) is not None:
            orphans.discard(uid)
            if not orphans:
                del self._orphans[node]
        if not pods:
            self._missing.pop(node, None)
            return False
        if node in self._missing:
            return False
        self._missing[node] = self._inherited.pop(node, Absence(now))
        return True


_NO_PODS: dict[str, Pod] = {}


def _is_candidate(pod: Pod) -> bool:
    return pod.is_terminating or pod.is_terminated


def _take(places: dict[str, dict[str, Pod]], node: str, uid: str) -> Pod | None:
    pods = places.get(node)
    if pods is None:
        return None
    found = pods.pop(uid, None)
    if not pods:
        del places[node]
    return found
