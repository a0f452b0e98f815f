"""Pods, nodes and namespaces, indexed for the planner's queries. Kept up to date by events, never scanned.

Guarantees:
- An event costs O(log n) at most, and nothing else in the index grows with time.
- `excess`, `missing`, `orphans` and the other queries need no scan.

The index decides nothing and reads no clock: event times are the event loop's seconds, passed with each event. What
counts, what is protected and which rule applies is up to its `classifier`. A settled pod (deleted with grace 0, held by
a finalizer, in a final phase) needs no further collection and is kept apart, for reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from podlife.api.views import Node
from podlife.podgc.classifier import Classifier, order_of
from podlife.podgc.views import Namespace, Pod

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"


def is_ready(node: Node) -> bool:
    """The first Ready condition counts, and only True is ready (GC-31)."""
    return next((each.status for each in node.status.conditions if each.type == "Ready"), "") == "True"


def is_out_of_service(node: Node) -> bool:
    """Not ready and tainted as out of service; value and effect of the taint do not matter (GC-30, GC-42)."""
    return not is_ready(node) and any(taint.key == OUT_OF_SERVICE_TAINT for taint in node.spec.taints)


@dataclass(slots=True)
class Absence:
    """A node that pods name and that does not exist: when it was first missed and last looked up on the server."""

    seen_at: float
    checked_at: float | None = None


class PodIndex:
    """`marks_failed` says whether running pods are marked Failed before deletion. If not, a held pod is settled in any
    phase."""

    def __init__(self, classifier: Classifier, *, marks_failed: bool = True) -> None:
        self.classifier = classifier
        self._marks_failed = marks_failed
        self._pods: dict[str, dict[str, Pod]] = {}
        self._terminating: dict[str, dict[str, Pod]] = {}
        self._settled: dict[str, Pod] = {}
        self._nodes: set[str] = set()
        # Names of nodes.
        self.out_of_service: set[str] = set()
        # Nodes that pods are on and that do not exist, in the order in which they were missed.
        self.missing: dict[str, Absence] = {}
        self._inherited: dict[str, Absence] = {}
        # UIDs of the pods whose node the server does not know, by node name.
        self.orphans: dict[str, set[str]] = {}
        self._count = 0
        # The number of pods by namespace.
        self.counts: dict[str, int] = {}
        self.namespaces: dict[str, Namespace] = {}

    # Events. Each returns whether a pod may have become collectable, now or later.

    def add_pod(self, pod: Pod, now: float) -> bool:
        self._insert(pod)
        return self._review(pod.spec.node_name, pod.metadata.uid, now) or pod.is_candidate

    def update_pod(self, old: Pod, new: Pod, now: float) -> bool:
        self._discard(old)
        self._insert(new)
        # The old node is reviewed second, and only if it differs: a node must not lose its quarantine in between.
        is_news = self._review(new.spec.node_name, new.metadata.uid, now)
        if (old.spec.node_name, old.metadata.uid) != (new.spec.node_name, new.metadata.uid):
            self._review(old.spec.node_name, old.metadata.uid, now)
        return is_news or new.is_candidate

    def remove_pod(self, pod: Pod, now: float) -> bool:
        self._discard(pod)
        self._review(pod.spec.node_name, pod.metadata.uid, now)
        return False

    def put_node(self, node: Node) -> bool:
        """A node was added or changed."""
        name = node.metadata.name
        self._nodes.add(name)
        self.missing.pop(name, None)
        self._inherited.pop(name, None)
        self.orphans.pop(name, None)
        if is_out_of_service(node):
            self.out_of_service.add(name)
            return name in self._terminating
        self.out_of_service.discard(name)
        return False

    def remove_node(self, node: Node, now: float) -> bool:
        name = node.metadata.name
        self._nodes.discard(name)
        self.out_of_service.discard(name)
        return self._review(name, "", now)

    def put_namespace(self, namespace: Namespace) -> bool:
        """A namespace was added or changed. Sent only if a policy or guards need namespaces."""
        self.namespaces[namespace.metadata.name] = namespace
        self.classifier.put_namespace(namespace)
        return True

    def remove_namespace(self, namespace: Namespace) -> None:
        self.namespaces.pop(namespace.metadata.name, None)
        self.classifier.remove_namespace(namespace)

    def pass_time(self, now: datetime) -> None:
        """Set the time of day, which decides about expiry and keep-until."""
        self.classifier.pass_time(now)

    # Missing nodes

    def begin_quarantines(self, now: float) -> None:
        """Restart the quarantine of every missing node: nothing was known before now."""
        self.orphans.clear()
        self.missing = {name: Absence(now) for name in self.missing}

    def inherit(self, before: PodIndex) -> None:
        """Take over which pods are being removed and since when which nodes are missing from the index of the previous
        policy, so that no quarantine restarts. Whether such a node is gone is checked again."""
        self.classifier.leaving.update(before.classifier.leaving)
        self._inherited = {name: Absence(absence.seen_at) for name, absence in before.missing.items()}

    def end_inheritance(self) -> None:
        """All pods are known: a node that none of them is on starts a new quarantine when it is missed again."""
        self._inherited.clear()

    def confirm_missing(self, name: str, now: float) -> bool:
        """The server does not know the node: the pods on it now are orphans (GC-52). Pods added later wait for the
        next check."""
        absence = self.missing.get(name)
        if absence is None:
            return False
        absence.checked_at = now
        self.orphans[name] = set(self._pods[name])
        return True

    def doubt_missing(self, name: str, now: float) -> None:
        """The server knows the node or could not be asked: its pods stay and a new quarantine begins (GC-53)."""
        self.orphans.pop(name, None)
        if (absence := self.missing.get(name)) is not None:
            absence.checked_at = now

    # Removals in progress

    def begin_removal(self, pod: Pod) -> None:
        """From here on the collector itself may change the pod's phase, which does not count for the threshold (GC-11):
        if it did, each pod marked Failed before its deletion would cause another pod to be deleted."""
        self.classifier.leaving.add(pod.metadata.uid)

    def end_removal(self, node: str, uid: str) -> None:
        """The pod is gone, or it stays and counts like any other again."""
        if uid not in self.classifier.leaving:
            return
        self.classifier.leaving.discard(uid)
        pod = self.pod(node, uid)
        if pod is not None:
            self.classifier.discard(pod)
            self.classifier.add(pod)

    # Queries

    def __len__(self) -> int:
        return self._count

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def has_node(self, name: str) -> bool:
        return name in self._nodes

    @property
    def terminating_count(self) -> int:
        return sum(len(pods) for pods in self._terminating.values())

    def excess(self, threshold: int) -> int:
        """How many terminated pods exceed the threshold (GC-11). Settled pods do not count (GC-14): if they did, each
        pod that a finalizer holds briefly would cause another pod to be deleted."""
        return max(0, self.terminated_count - threshold)

    @property
    def terminated_count(self) -> int:
        """Without settled pods."""
        return len(self.classifier.terminated)

    def first_terminated(self, count: int) -> Iterable[Pod]:
        """In the order of victims."""
        for *_, uid, node in self.classifier.terminated.islice(0, count):
            yield self._pods[node][uid]

    def is_among_first(self, pod: Pod, count: int) -> bool:
        if count <= 0 or not self.classifier.counts(pod):
            return False
        return order_of(pod) <= self.classifier.terminated[count - 1]

    def pod(self, node: str, uid: str) -> Pod | None:
        """The pod, unless it is gone or settled."""
        return self._pods.get(node, _NO_PODS).get(uid)

    def pods_on(self, node: str) -> Collection[Pod]:
        """Without settled pods."""
        return self._pods.get(node, _NO_PODS).values()

    def terminating_on(self, node: str) -> Collection[Pod]:
        """With an empty name, pods that were never scheduled."""
        return self._terminating.get(node, _NO_PODS).values()

    @property
    def settled(self) -> Collection[Pod]:
        return self._settled.values()

    def is_settled(self, pod: Pod) -> bool:
        return pod.is_held and (pod.has_ended or not self._marks_failed)

    # Bookkeeping

    def _insert(self, pod: Pod) -> None:
        self._add_count(pod.metadata.namespace, 1)
        uid, node = pod.metadata.uid, pod.spec.node_name
        if self.is_settled(pod):
            self._settled[uid] = pod
            return
        self._pods.setdefault(node, {})[uid] = pod
        if pod.is_terminating:
            self._terminating.setdefault(node, {})[uid] = pod
        self.classifier.add(pod)

    def _discard(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        if self._settled.pop(uid, None) is not None:
            self._add_count(pod.metadata.namespace, -1)
            return
        known = _take(self._pods, node, uid)
        if known is None and node:
            # The last state may name a node that no earlier event did.
            node, known = "", _take(self._pods, "", uid)
        if known is None:
            return
        self._add_count(pod.metadata.namespace, -1)
        _take(self._terminating, node, uid)
        self.classifier.discard(known)

    def _add_count(self, namespace: str, change: int) -> None:
        self._count += change
        number = self.counts.get(namespace, 0) + change
        if number:
            self.counts[namespace] = number
        else:
            del self.counts[namespace]

    def _review(self, node: str, uid: str, now: float) -> bool:
        """After a change to the node or to a pod on it; returns whether the node is missing from now on."""
        if not node or node in self._nodes:
            return False
        pods = self._pods.get(node, _NO_PODS)
        if uid not in pods and (orphans := self.orphans.get(node)) is not None:
            orphans.discard(uid)
            if not orphans:
                del self.orphans[node]
        if not pods:
            self.missing.pop(node, None)
            return False
        if node in self.missing:
            return False
        self.missing[node] = self._inherited.pop(node, Absence(now))
        return True


_NO_PODS: dict[str, Pod] = {}


def _take(places: dict[str, dict[str, Pod]], node: str, uid: str) -> Pod | None:
    pods = places.get(node)
    if pods is None:
        return None
    found = pods.pop(uid, None)
    if not pods:
        del places[node]
    return found
