"""Which pods of lower priority make way for a pod that fits nowhere. Pure, by the rules and with the messages of
kube-scheduler's DefaultPreemption.

On each node that could become suitable, all pods of lower priority are removed and as many as possible put back: first
those whose disruption budget would be violated, then by importance. The rest are the victims. Of the nodes that were
tried, the best by `Candidate.cost` is chosen; ties, which upstream leaves to chance, are broken by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.api.selectors import label_selector_from_dict
from podlife.scheduler.demand import Demand
from podlife.scheduler.node_cache import NodeCache, NodeInfo
from podlife.scheduler.nominator import Nominator
from podlife.scheduler.schedule_algorithm import (
    Obstacles,
    is_resolvable,
    obstacles_with_reserved,
    unschedulable_message,
)
from podlife.scheduler.topology_filters import TopologyFilter
from podlife.scheduler.views import Budget, SchedulerPod

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"
# Upstream's default limits of the search: at least a tenth of the nodes, and at least a hundred.
_LEAST_SHARE, _LEAST_CANDIDATES = 10, 100
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
# Makes all priorities positive, so that two negative ones weigh more than one.
_PRIORITY_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the pods to remove from it, most important first."""

    node_name: str
    victims: tuple[SchedulerPod, ...]
    violations: int

    def cost(self, now: datetime) -> tuple[int, int, int, int, float, str]:
        """Lowest is best: violated budgets, highest priority, sum of priorities, number of victims; then the node
        whose most important victims started last."""
        highest = self.victims[0].priority
        total = sum(each.priority + _PRIORITY_OFFSET for each in self.victims)
        started = min(_started(each, now) for each in self.victims if each.priority == highest)
        return self.violations, highest, total, len(self.victims), -started.timestamp(), self.node_name


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is preempted. `ends_nomination`: the pod no longer waits for the node it was nominated for."""

    message: str
    ends_nomination: bool = False


class Preemption:
    """`pod_of` returns a pod that is on a node by its UID."""

    def __init__(
        self, nodes: NodeCache, nominator: Nominator, pod_of: Callable[[str], SchedulerPod | None]
    ) -> None:
        self._nodes = nodes
        self._nominator = nominator
        self._pod_of = pod_of

    def evaluate(
        self,
        pod: SchedulerPod,
        demand: Demand,
        obstacles: Obstacles,
        budgets: Iterable[Budget],
        now: datetime,
    ) -> Candidate | Refusal:
        """`obstacles`: why the pod fits on none of the nodes."""
        if pod.spec.preemption_policy == "Never":
            return Refusal("not eligible due to preemptionPolicy=Never.")
        if self._has_going_victim(pod, demand, obstacles):
            return Refusal("not eligible due to a terminating pod on the nominated node.")
        tried = list(self._try_nodes(pod, demand, obstacles, list(budgets), now))
        found = [each for each in tried if isinstance(each, Candidate)]
        if found:
            return min(found, key=lambda each: each.cost(now))
        reasons: dict[str, tuple[str, ...]] = dict.fromkeys(obstacles, (_NOT_HELPFUL,))
        for each in tried:
            if not isinstance(each, Candidate):
                reasons |= each
        return Refusal(unschedulable_message(len(self._nodes), reasons), ends_nomination=True)

    def _has_going_victim(self, pod: SchedulerPod, demand: Demand, obstacles: Obstacles) -> bool:
        """Whether a pod that was preempted still terminates on the nominated node."""
        state = self._nodes.get(self._nominator.node_of(pod.metadata.uid))
        if state is None or not is_resolvable(demand, state, obstacles.get(state.name, ())):
            return False
        return any(_is_preempted(each) for each in self._lower(demand, state).values())

    def _try_nodes(
        self,
        pod: SchedulerPod,
        demand: Demand,
        obstacles: Obstacles,
        budgets: Sequence[Budget],
        now: datetime,
    ) -> Iterator[Candidate | Mapping[str, tuple[str, ...]]]:
        topology = TopologyFilter(demand, self._nodes)
        has_lower = any(priority < demand.priority for priority in self._nodes.priorities)
        states = [self._nodes.get(name) for name in sorted(obstacles)]
        potential = [
            each for each in states if each is not None and is_resolvable(demand, each, obstacles[each.name])
        ]
        wanted = max(_LEAST_CANDIDATES, len(potential) * _LEAST_SHARE // 100)
        found, harmless = 0, 0
        for state in potential:
            lower = self._lower(demand, state) if has_lower else {}
            if not lower:
                yield {state.name: (_NO_VICTIMS,)}
                continue
            reserved = self._nominator.reserved(state.name, pod.metadata.uid, demand.priority)
            trial = _Trial(demand, state, topology, reserved)
            result = trial.run(lower, budgets, now)
            trial.undo(lower)
            yield result if isinstance(result, Candidate) else {state.name: result}
            if isinstance(result, Candidate):
                found += 1
                harmless += not result.violations
                if harmless and found >= wanted:
                    return

    def _lower(self, demand: Demand, state: NodeInfo) -> dict[str, SchedulerPod]:
        """Pods of lower priority on a node, by UID."""
        uids = [uid for uid, each in state.pods.items() if each.priority < demand.priority]
        found = ((uid, self._pod_of(uid)) for uid in uids)
        return {uid: each for uid, each in found if each is not None}


class _Trial:
    """One node, as if some of its pods were gone."""

    def __init__(
        self, demand: Demand, state: NodeInfo, topology: TopologyFilter, reserved: Mapping[str, Demand]
    ) -> None:
        self._demand = demand
        self._original = state
        self._state = state.copy()
        self._topology = topology
        self._reserved = reserved

    def run(
        self, lower: Mapping[str, SchedulerPod], budgets: Sequence[Budget], now: datetime
    ) -> Candidate | tuple[str, ...]:
        """The victims on this node, or why the pod would not fit without them either."""
        for uid in lower:
            self._remove(uid)
        if why := self._obstacles():
            return why
        violating, others = _split_by_budget(_by_importance(lower.values(), now), budgets)
        harmed = [each for each in violating if not self._put_back(each)]
        victims = [*harmed, *(each for each in others if not self._put_back(each))]
        return Candidate(self._state.name, tuple(_by_importance(victims, now)), len(harmed))

    def undo(self, lower: Iterable[str]) -> None:
        """Restore the counts of the topology, which all trials share."""
        for uid in lower:
            if uid not in self._state.pods:
                self._topology.count(self._original.pods[uid], self._original, 1)

    def _remove(self, uid: str) -> None:
        self._topology.count(self._state.pods[uid], self._state, -1)
        self._state.remove(uid)

    def _put_back(self, pod: SchedulerPod) -> bool:
        """Return whether there is still room for the pod that is scheduled."""
        uid = pod.metadata.uid
        self._state.add(uid, self._original.pods[uid])
        self._topology.count(self._original.pods[uid], self._state, 1)
        if not self._obstacles():
            return True
        self._remove(uid)
        return False

    def _obstacles(self) -> tuple[str, ...]:
        return obstacles_with_reserved(self._demand, self._state, self._topology, self._reserved)


def _started(pod: SchedulerPod, now: datetime) -> datetime:
    return pod.status.start_time or now


def _by_importance(pods: Iterable[SchedulerPod], now: datetime) -> list[SchedulerPod]:
    return sorted(pods, key=lambda each: (-each.priority, _started(each, now)))


def _is_preempted(pod: SchedulerPod) -> bool:
    target = pod.condition(DISRUPTION_TARGET)
    is_marked = target is not None and (target.status, target.reason) == ("True", PREEMPTED)
    return is_marked and pod.metadata.deletion_timestamp is not None


def _split_by_budget(
    pods: Iterable[SchedulerPod], budgets: Sequence[Budget]
) -> tuple[list[SchedulerPod], list[SchedulerPod]]:
    """Pods whose removal violates a budget, and the others."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating: list[SchedulerPod] = []
    others: list[SchedulerPod] = []
    for pod in pods:
        is_violating = False
        for place, budget in enumerate(budgets):
            if _covers(budget, pod):
                allowed[place] -= 1
                is_violating = is_violating or allowed[place] < 0
        (violating if is_violating else others).append(pod)
    return violating, others


def _covers(budget: Budget, pod: SchedulerPod) -> bool:
    if budget.metadata.namespace != pod.metadata.namespace or not pod.metadata.labels:
        return False
    if pod.metadata.name in budget.status.disrupted_pods:
        return False
    try:
        selector = label_selector_from_dict(budget.spec.selector or {})
    except ValueError:
        return False
    # As upstream, an empty selector selects nothing here.
    return bool(selector.requirements) and selector.matches(pod.metadata.labels)
