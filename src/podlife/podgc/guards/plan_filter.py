"""Applies the guards to a plan. Pure.

Executing a plan is one pass: as in the running collector, shares are judged on all its victims, on pods of missing
nodes, which go when the quarantine ends, and on pods that wait for their owners.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from podlife.podgc.guards.budget import DeletionBudget, Moment
from podlife.podgc.index import PodIndex
from podlife.podgc.namespace_annotations import annotations_of
from podlife.podgc.plan import Action, Census, Guard, HeldBack, Plan, Refusal, Victim
from podlife.podgc.planner import part_of, victim_for
from podlife.podgc.reasons import Reason
from podlife.podgc.settings import Settings
from podlife.podgc.views import Pod


class HeldVictims:
    """Collects refused victims by guard and place."""

    def __init__(self) -> None:
        self._held: dict[tuple[Guard, str], tuple[Refusal, list[Victim]]] = {}

    def note(self, refusal: Refusal, victim: Victim) -> None:
        self._held.setdefault((refusal.guard, refusal.place), (refusal, []))[1].append(victim)

    @property
    def held_back(self) -> tuple[HeldBack, ...]:
        return tuple(HeldBack(refusal, tuple(victims)) for refusal, victims in self._held.values())


def census_of(index: PodIndex) -> Census:
    return Census(dict(index.counts), annotations_of(index.namespaces.values()))


def budget_for(settings: Settings, plan: Plan, moment: Moment) -> DeletionBudget | None:
    """The budget at the beginning of a pass that executes the plan; None without guards."""
    if settings.guards is None:
        return None
    census = plan.census or Census()
    budget = DeletionBudget(settings.guards, is_forced=settings.is_forced)
    budget.set_annotations(census.annotations)
    budget.begin_pass(census.pods)
    budget.judge(Counter(pod.metadata.namespace for pod in _wanted(plan)), moment)
    return budget


def admitted(budget: DeletionBudget, victim: Victim, moment: Moment) -> Refusal | None:
    """Why the victim is held back, or None. Plans, sweeps and the running collector all use it."""
    return budget.admit(victim.pod, moment, is_deletion=victim.action is not Action.MARK)


def hold_back(
    plan: Plan, settings: Settings, moment: Moment, is_meant: Callable[[Pod], bool] = lambda pod: True
) -> Plan:
    """Split the plan into what goes if it is executed now and what guards hold back. Pods that are not meant do not go,
    but count for shares."""
    budget = budget_for(settings, plan, moment)
    plan = part_of(plan, is_meant)
    if budget is None:
        return plan
    held, staying = HeldVictims(), set[str]()
    # Orphans last, in the order of execution: the server is asked for their node first.
    for victim in sorted(plan.victims, key=lambda victim: victim.reason is Reason.ORPHANED):
        if (refusal := admitted(budget, victim, moment)) is not None:
            held.note(refusal, victim)
            staying.add(victim.pod.metadata.uid)
    for later in plan.later:
        for pod in later.pods:
            refusal = budget.refusal_of(pod.metadata.namespace, moment)
            # Counting guards and windows may allow it by then.
            if refusal is not None and refusal.guard in _LASTING:
                held.note(refusal, victim_for(settings, pod, later.reason, later.why))
                staying.add(pod.metadata.uid)
    goes = part_of(plan, lambda pod: pod.metadata.uid not in staying)
    return replace(plan, victims=goes.victims, later=goes.later, held_back=held.held_back)


def going(plan: Plan) -> Iterator[Pod]:
    """Pods that go if the plan is executed: now, when the minute has room, or when a quarantine ends."""
    held = (victim for each in plan.held_back if each.is_for_a_minute for victim in each.victims)
    yield from (victim.pod for victim in (*plan.victims, *held))
    yield from (pod for later in plan.later for pod in later.pods)


_LASTING = (Guard.STOP, Guard.CLUSTER_SHARE, Guard.NAMESPACE_SHARE)


def _wanted(plan: Plan) -> Iterable[Pod]:
    """Each pod that would go if no guard held it: now, after a quarantine, or after the owner wait."""
    held = (victim for each in plan.held_back for victim in each.victims)
    waiting = (waits.victim for waits in plan.waiting)
    pods = [victim.pod for victim in (*plan.victims, *held, *waiting)]
    pods += (pod for later in plan.later for pod in later.pods)
    return {pod.metadata.uid: pod for pod in pods}.values()
