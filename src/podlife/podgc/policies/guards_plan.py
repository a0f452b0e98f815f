"""What the guards hold back of a plan, for whoever reads it or is about to carry it out. Pure.

A plan that is carried out at once is one pass: shares are judged on all its victims, and on the pods whose node is
missing too, which go when its quarantine ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from podlife.podgc.index import PodIndex
from podlife.podgc.policies.guards import Guard, GuardBook, Moment, Refusal
from podlife.podgc.policies.guards_marks import Marks, marks_of
from podlife.podgc.policies.model import Guards
from podlife.podgc.policy import Plan, Victim, part_of
from podlife.podgc.settings import Settings
from podlife.podgc.views import Pod

__all__ = ["Census", "HeldBack", "book_for", "census_of", "hold_back", "tighter", "without_held"]


@dataclass(frozen=True, slots=True)
class Census:
    """How many pods there are, by namespace, and what is written on namespaces: what a plan is guarded by."""

    pods: Mapping[str, int] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)


@dataclass(frozen=True, slots=True)
class HeldBack:
    refusal: Refusal
    pods: tuple[Pod, ...]


def census_of(index: PodIndex) -> Census:
    annotations = {name: each.metadata.annotations for name, each in index.namespaces.items()}
    return Census(dict(index.counts), marks_of(annotations))


def tighter(one: Guards | None, other: Guards | None) -> Guards | None:
    """Where both say something, the lower bound; windows and shares are those of the second where it has any."""
    if one is None or other is None:
        return other if one is None else one
    return replace(
        other,
        per_minute=min((n for n in (one.per_minute, other.per_minute) if n is not None), default=None),
        per_pass=min((n for n in (one.per_pass, other.per_pass) if n is not None), default=None),
        is_observing=one.is_observing or other.is_observing,
    )


def book_for(settings: Settings, plan: Plan, moment: Moment) -> GuardBook | None:
    """The book at the beginning of a pass that carries out the plan; None without guards."""
    if settings.guards is None:
        return None
    census = plan.census or Census()
    book = GuardBook(settings.guards, is_forced=settings.is_forced)
    book.mark(census.marks)
    book.begin_pass(census.pods)
    book.judge(Counter(pod.metadata.namespace for pod in _wanted(plan)), moment)
    return book


def hold_back(plan: Plan, settings: Settings, moment: Moment) -> Plan:
    """The plan without the victims that would be held now; they are told with what holds them. Observed ones stay
    among the victims, to be seen."""
    book = book_for(settings, plan, moment)
    if book is None:
        return plan
    goes: list[Victim] = []
    held: dict[tuple[Guard, str], tuple[Refusal, list[Pod]]] = {}
    for victim in plan.victims:
        refusal = book.admit(victim.pod, moment)
        if refusal is None or refusal.guard is Guard.OBSERVING:
            goes.append(victim)
        if refusal is not None:
            _note(held, refusal, victim.pod)
    for pod in (pod for later in plan.later for pod in later.pods):
        refusal = book.refusal_of(pod.metadata.namespace, moment)
        # Those that count or go by the time of day may have let go of it by then.
        if refusal is not None and refusal.guard in _LASTING:
            _note(held, refusal, pod)
    found = tuple(HeldBack(refusal, tuple(pods)) for refusal, pods in held.values())
    return replace(plan, victims=tuple(goes), held_back=found)


def without_held(plan: Plan, held_back: Iterable[HeldBack]) -> Plan:
    """What of the plan somebody agrees to who was shown what is held back of it: not those that are, also if nothing
    holds them any more when it is carried out. For room in the minute a sweep only waits."""
    held = {
        pod.metadata.uid
        for item in held_back
        if item.refusal.guard is not Guard.PER_MINUTE
        for pod in item.pods
    }
    return part_of(plan, lambda pod: pod.metadata.uid not in held)


_LASTING = (Guard.STOP, Guard.CLUSTER_SHARE, Guard.NAMESPACE_SHARE)


def _note(held: dict[tuple[Guard, str], tuple[Refusal, list[Pod]]], refusal: Refusal, pod: Pod) -> None:
    held.setdefault((refusal.guard, refusal.place), (refusal, []))[1].append(pod)


def _wanted(plan: Plan) -> list[Pod]:
    return [victim.pod for victim in plan.victims] + [pod for later in plan.later for pod in later.pods]
