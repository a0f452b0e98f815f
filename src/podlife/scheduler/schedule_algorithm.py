"""Selects a node for a pod, or reports why none is suitable. Pure except for its cache.

Pods with equal demands share their candidates: a heap of nodes with the best first, and the reasons why the others
were filtered out. Between two decisions only nodes that changed are evaluated again, so the thousandth pod of a
ReplicaSet costs as much on ten nodes as on ten thousand. If affinity or topology spread is involved, every node is
evaluated. Filters have the order and the messages of kube-scheduler's; a node that is not ready carries a taint, which
the node lifecycle controller sets.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping

from podlife.api.pod_requests import clash
from podlife.lru import LruCache
from podlife.scheduler.demand import Demand
from podlife.scheduler.node_cache import NodeCache, NodeInfo
from podlife.scheduler.nominator import Nominator
from podlife.scheduler.topology_filters import TopologyFilter

_MOST_KINDS = 128
NodeFilter = Callable[[NodeInfo], str]
"""Why a pod cannot use the node; empty if it can."""
Score = tuple[int, int, int, float, str]
"""Lowest is best: pods of the same owner, weight of unmatched preferences, PreferNoSchedule taints, utilization, and
the name, so that the choice is deterministic."""
Obstacles = Mapping[str, tuple[str, ...]]
"""By node: the reasons why it is unsuitable."""

_PORTS = "node(s) didn't have free ports for the requested pod ports"
_TOO_MANY, _INSUFFICIENT = "Too many pods", "Insufficient "
# What the removal of other pods could change.
_RESOLVABLE = frozenset(
    {
        _PORTS,
        _TOO_MANY,
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't satisfy existing pods anti-affinity rules",
    }
)


def unschedulable_message(nodes: int, obstacles: Obstacles, why: str = "") -> str:
    """kube-scheduler's message for an unschedulable pod; `why` is what keeps it from all nodes alike."""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = Counter(reason for each in obstacles.values() for reason in each)
    counted = why or ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {counted}."


class _Kind:
    """Results for pods with equal demands. Scores in the heap may be stale: `scores` has the valid ones."""

    def __init__(self) -> None:
        self.position = -1
        self.scores: dict[str, Score] = {}
        self.heap: list[Score] = []
        self.obstacles: dict[str, tuple[str, ...]] = {}

    def evaluate(self, demand: Demand, name: str, state: NodeInfo | None) -> None:
        self.scores.pop(name, None)
        self.obstacles.pop(name, None)
        if state is None:
            return
        if found := obstacles(demand, state):
            self.obstacles[name] = found
        else:
            self.scores[name] = scored = score(demand, state)
            heapq.heappush(self.heap, scored)

    def best(self) -> str | None:
        while self.heap:
            name = self.heap[0][-1]
            if self.scores.get(name) == self.heap[0]:
                return name
            heapq.heappop(self.heap)
        return None


class ScheduleAlgorithm:
    def __init__(self, nodes: NodeCache, nominator: Nominator | None = None) -> None:
        self._nodes = nodes
        self._nominator = nominator or Nominator()
        self._kinds = LruCache[bytes, _Kind](_MOST_KINDS)

    def decide(self, demand: Demand, uid: str = "", own: NodeFilter | None = None) -> str | Obstacles:
        """The node's name, or the obstacles of all nodes, valid until the next call. Room that nominated pods of the
        same or a higher priority wait for is not given away; the pod `uid` prefers the node it was nominated for.
        `own` is a filter that no other pod shares."""
        kind = self._kind(demand)
        preferred = self._nominator.node_of(uid)
        has_reserved = self._nominator.has_reserved(uid, demand.priority)
        among_pods = demand.depends_on_pods or self._nodes.pods_with_anti_affinity or has_reserved
        if among_pods or preferred or own is not None:
            return self._decide_one_by_one(demand, kind, uid, preferred, own)
        best = kind.best()
        return best if best is not None else kind.obstacles

    def _kind(self, demand: Demand) -> _Kind:
        kind = self._kinds.get(demand.key)
        if kind is None:
            kind = _Kind()
            self._kinds.put(demand.key, kind)
        changed = self._nodes.changed_since(kind.position)
        if changed is None or len(kind.heap) > 4 * len(kind.scores) + 1000:
            kind.heap.clear()
            changed = {*kind.scores, *kind.obstacles, *(state.name for state in self._nodes)}
        for name in changed:
            kind.evaluate(demand, name, self._nodes.get(name))
        kind.position = self._nodes.position
        return kind

    def _decide_one_by_one(
        self, demand: Demand, kind: _Kind, uid: str, preferred: str, own: NodeFilter | None
    ) -> str | Obstacles:
        topology = TopologyFilter(demand, self._nodes)
        found = dict(kind.obstacles)
        for scored in sorted(kind.scores.values(), key=lambda each: (each[-1] != preferred, each)):
            state = self._nodes.get(scored[-1])
            assert state is not None
            if own is not None and (reason := own(state)):
                found[state.name] = (reason,)
                continue
            reserved = self._nominator.reserved(state.name, uid, demand.priority)
            if not (why := obstacles_with_reserved(demand, state, topology, reserved)):
                return state.name
            found[state.name] = why
        return found


def obstacles_with_reserved(
    demand: Demand, state: NodeInfo, topology: TopologyFilter, reserved: Mapping[str, Demand]
) -> tuple[str, ...]:
    """As `obstacles`, with those of the topology. The node must be suitable with the pods that wait for room on it, and
    without them: they may be what an affinity needs, and may never come."""
    if reserved:
        crowded = state.copy()
        for uid, other in reserved.items():
            crowded.add(uid, other)
            topology.count(other, state, 1)
        why = _all_obstacles(demand, crowded, topology)
        for other in reserved.values():
            topology.count(other, state, -1)
        if why:
            return why
    return _all_obstacles(demand, state, topology)


def _all_obstacles(demand: Demand, state: NodeInfo, topology: TopologyFilter) -> tuple[str, ...]:
    if found := obstacles(demand, state):
        return found
    why = topology.obstacle(state)
    return (why,) if why else ()


def is_resolvable(demand: Demand, state: NodeInfo, reasons: tuple[str, ...]) -> bool:
    """Whether these obstacles could go with other pods: not if the node is too small, or not meant for the pod."""
    return all(
        each in _RESOLVABLE
        or (
            each.startswith(_INSUFFICIENT)
            and demand.requests[each.removeprefix(_INSUFFICIENT)]
            <= state.allocatable[each.removeprefix(_INSUFFICIENT)]
        )
        for each in reasons
    )


def obstacles(demand: Demand, state: NodeInfo) -> tuple[str, ...]:
    """Why the node is unsuitable; empty if it is suitable. Only the first failing filter counts."""
    node = state.node
    assert node is not None
    if node.spec.unschedulable and not demand.tolerates_cordon:
        return ("node(s) were unschedulable",)
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not demand.tolerates(taint):
            return ("node(s) had untolerated taint(s)",)
    if not demand.requirement.matches(state.name, state.labels):
        return ("node(s) didn't match Pod's node affinity/selector",)
    if demand.ports and any(clash(one, other) for one in demand.ports for other in state.ports):
        return (_PORTS,)
    return tuple(_insufficient(demand, state))


def _insufficient(demand: Demand, state: NodeInfo) -> list[str]:
    found = []
    if len(state.pods) + 1 > state.allocatable["pods"]:
        found.append(_TOO_MANY)
    found += [
        f"{_INSUFFICIENT}{key}"
        for key, wanted in demand.requests.items()
        if wanted > state.allocatable[key] - state.used[key]
    ]
    return found


def score(demand: Demand, state: NodeInfo) -> Score:
    node = state.node
    assert node is not None
    unwanted = sum(
        weight for weight, wish in demand.preferences if not wish.matches(state.name, state.labels)
    )
    avoided = sum(
        1 for taint in node.spec.taints if taint.effect == "PreferNoSchedule" and not demand.tolerates(taint)
    )
    together = state.owners[demand.owner] if demand.owner else 0
    return (together, unwanted, avoided, state.pod_share(), state.name)
