"""Which pods are evicted because of taints, and when. Pure; times are parameters.

The time starts when taint and pod are first observed together (TE-10). A scheduled eviction does not move: neither a
longer nor a shorter toleration changes it (TE-08, TE-09); it is cancelled if the pod tolerates the taints forever or
they are removed. Pods are identified by UID: a pod recreated under the same name inherits nothing (unlike upstream,
TE-52).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sortedcontainers import SortedDict

from podlife.nodehealth.taints import evicting_taints, seconds_to_bear
from podlife.nodehealth.views import MonitoredNode, MonitoredPod, NodeTaint


class EvictionOutcome(Enum):
    UNCHANGED = "unchanged"
    SET = "scheduled"
    CANCELLED = "cancelled"
    # Not tolerated: evicted now.
    NOW = "now"
    # Evicted now, which cancels an eviction that was scheduled for later (TE-05).
    SOONER = "sooner"


@dataclass(slots=True)
class Eviction:
    namespace: str
    name: str
    uid: str
    node: str
    due_at: float
    is_reported: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Evictions:
    def __init__(self) -> None:
        self._taints: dict[str, tuple[NodeTaint, ...]] = {}
        # By UID: evictions that are not due yet, with their place in the order, and those that are.
        self._waiting: dict[str, tuple[float, int]] = {}
        self._order: SortedDict[tuple[float, int], Eviction] = SortedDict()
        self._due: dict[str, Eviction] = {}
        # Deleted and still terminating: another update of the taint must not evict them twice.
        self._done: set[str] = set()
        self._added = 0

    @property
    def waiting(self) -> Mapping[str, float]:
        """Due times by UID."""
        return {uid: place[0] for uid, place in self._waiting.items()}

    @property
    def next_due(self) -> float:
        """Due time of the next eviction; infinity if none is waiting."""
        return self._order.peekitem(0)[0][0] if self._order else math.inf

    def taints_of(self, node: str) -> tuple[NodeTaint, ...]:
        return self._taints.get(node, ())

    def set_taints(self, node: MonitoredNode) -> bool:
        """Return whether the node has NoExecute taints. The caller evaluates its pods afterwards."""
        taints = evicting_taints(node.spec.taints)
        if taints:
            self._taints[node.metadata.name] = taints
        else:
            self._taints.pop(node.metadata.name, None)
        return bool(taints)

    def forget_node(self, name: str) -> None:
        """A scheduled eviction is kept (TE-12)."""
        self._taints.pop(name, None)

    def evaluate(self, pod: MonitoredPod, now: float) -> EvictionOutcome:
        """Schedule or cancel the eviction of a pod, by its tolerations and the taints of its node."""
        taints = self._taints.get(pod.spec.node_name)
        if not taints:
            return EvictionOutcome.UNCHANGED
        uid = pod.metadata.uid
        seconds = seconds_to_bear(taints, pod.spec.tolerations)
        if seconds is None:
            was_waiting = self.cancel(uid) if uid in self._waiting else False
            if uid not in self._due:
                self._set(pod, now)
            return EvictionOutcome.SOONER if was_waiting else EvictionOutcome.NOW
        if seconds == math.inf:
            return EvictionOutcome.CANCELLED if self.cancel(uid) else EvictionOutcome.UNCHANGED
        if uid in self._waiting or uid in self._due or uid in self._done:
            return EvictionOutcome.UNCHANGED
        self._set(pod, now + seconds)
        return EvictionOutcome.SET

    def cancel(self, uid: str) -> bool:
        """Return whether the eviction was not due yet: a cancellation after the due time records no event (TE-18)."""
        self._due.pop(uid, None)
        self._done.discard(uid)
        place = self._waiting.pop(uid, None)
        if place is not None:
            del self._order[place]
        return place is not None

    def take_due(self, now: float) -> list[Eviction]:
        """Evictions that became due since the last call."""
        taken = []
        while self._order and self._order.peekitem(0)[0][0] <= now:
            eviction = self._order.popitem(0)[1]
            del self._waiting[eviction.uid]
            self._due[eviction.uid] = eviction
            taken.append(eviction)
        return taken

    def due(self, uid: str) -> Eviction | None:
        """The eviction of this pod, if it is due and not cancelled."""
        return self._due.get(uid)

    def finish(self, uid: str) -> None:
        """Record that the pod was evicted: unless cancelled meanwhile, it is not scheduled again until `cancel`."""
        if self._due.pop(uid, None) is not None:
            self._done.add(uid)

    def _set(self, pod: MonitoredPod, at: float) -> None:
        metadata = pod.metadata
        self._added += 1
        place = (at, self._added)
        self._waiting[metadata.uid] = place
        self._order[place] = Eviction(metadata.namespace, metadata.name, metadata.uid, pod.spec.node_name, at)
