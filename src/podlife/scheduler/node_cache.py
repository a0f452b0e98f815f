"""Nodes and the resources in use on each, updated by events; tracks which nodes changed since a position, so that only
those are evaluated again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from podlife.api.pod_requests import HostPort, amounts
from podlife.scheduler.demand import Demand
from podlife.scheduler.views import SchedulerNode

_MOST_CHANGES = 20_000


class NodeInfo:
    """One node and its pods by UID. `node` is None while only its pods are known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: SchedulerNode | None = None
        self.allocatable: Counter[str] = Counter()
        self.pods: dict[str, Demand] = {}
        self.used: Counter[str] = Counter()
        self.ports: Counter[HostPort] = Counter()
        self.owners: Counter[str] = Counter()

    def set_node(self, node: SchedulerNode | None) -> None:
        self.node = node
        self.allocatable = amounts(node.status.allocatable if node is not None else None)

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels if self.node is not None else {}

    def add(self, uid: str, demand: Demand) -> None:
        self.pods[uid] = demand
        self.used.update(demand.requests)
        self.ports.update(demand.ports)
        self.owners[demand.owner] += 1

    def remove(self, uid: str) -> None:
        demand = self.pods.pop(uid)
        self.used.subtract(demand.requests)
        self.ports.subtract(demand.ports)
        self.owners[demand.owner] -= 1
        # Remove zero counts: the number of owners is unbounded.
        for counter in (self.ports, self.owners):
            for key in [key for key, count in counter.items() if count <= 0]:
                del counter[key]

    def copy(self) -> NodeInfo:
        """Pods may be added to the copy and removed from it; the node is shared."""
        other = NodeInfo(self.name)
        other.node, other.allocatable, other.pods = self.node, self.allocatable, self.pods.copy()
        other.used, other.ports, other.owners = self.used.copy(), self.ports.copy(), self.owners.copy()
        return other

    def pod_share(self) -> float:
        """The utilization of the node's scarcest resource."""
        most = len(self.pods) / (self.allocatable["pods"] or 110)
        for key in ("cpu", "memory"):
            if self.allocatable[key]:
                most = max(most, self.used[key] / self.allocatable[key])
        return most


class NodeCache:
    """All nodes. `changed_since(position)` returns the nodes that changed after an earlier `position`."""

    def __init__(self) -> None:
        self._states: dict[str, NodeInfo] = {}
        self._where: dict[str, str] = {}
        # Pods with required anti-affinity, which every decision checks. There are few.
        self.pods_with_anti_affinity: dict[str, tuple[Demand, NodeInfo]] = {}
        # Numbers of pods by priority: most pods find none below their own, without a look at the nodes.
        self.priorities: Counter[int] = Counter()
        # Names in order of change, bounded: a reader that is further behind evaluates all nodes.
        self._changed: list[str] = []
        self._dropped = 0

    def __iter__(self) -> Iterator[NodeInfo]:
        """Nodes that exist, without those known only by their pods."""
        return (state for state in self._states.values() if state.node is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, name: str) -> NodeInfo | None:
        state = self._states.get(name)
        return state if state is not None and state.node is not None else None

    def put_node(self, node: SchedulerNode) -> None:
        name = node.metadata.name
        self._state(name).set_node(node)
        self._note(name)

    def remove_node(self, name: str) -> None:
        state = self._state(name)
        state.set_node(None)
        if not state.pods:
            del self._states[name]
        self._note(name)

    def put_pod(self, uid: str, demand: Demand, node_name: str) -> None:
        """Count a bound or assumed pod on this node. A pod with another demand is removed first."""
        if self._where.get(uid) == node_name:
            return
        self.remove_pod(uid)
        state = self._state(node_name)
        state.add(uid, demand)
        if demand.has_anti_affinity:
            self.pods_with_anti_affinity[uid] = (demand, state)
        self.priorities[demand.priority] += 1
        self._where[uid] = node_name
        self._note(node_name)

    def remove_pod(self, uid: str) -> bool:
        """Return whether it was on a node."""
        name = self._where.pop(uid, None)
        if name is None:
            return False
        state = self._states[name]
        priority = state.pods[uid].priority
        self.priorities[priority] -= 1
        if not self.priorities[priority]:
            del self.priorities[priority]
        state.remove(uid)
        self.pods_with_anti_affinity.pop(uid, None)
        if state.node is None and not state.pods:
            del self._states[name]
        self._note(name)
        return True

    def requests_of(self, uid: str) -> dict[str, int] | None:
        """What counts for a pod on its node."""
        name = self._where.get(uid)
        return None if name is None else self._states[name].pods[uid].requests

    def where(self, uid: str) -> str | None:
        return self._where.get(uid)

    @property
    def position(self) -> int:
        return self._dropped + len(self._changed)

    def changed_since(self, position: int) -> set[str] | None:
        """Names of the nodes that changed since then; None if the position is too old."""
        if position < self._dropped:
            return None
        return set(self._changed[position - self._dropped :])

    def _state(self, name: str) -> NodeInfo:
        if name not in self._states:
            self._states[name] = NodeInfo(name)
        return self._states[name]

    def _note(self, name: str) -> None:
        self._changed.append(name)
        if len(self._changed) > _MOST_CHANGES:
            half = len(self._changed) // 2
            self._dropped += half
            del self._changed[:half]
