"""What the guards hold back of a plan, for whoever reads it or is about to carry it out. Pure.

A plan that is carried out at once is one pass: shares are judged on all its victims, and on the pods whose node is
missing too, which go when its quarantine ends, and on those that wait for their owners, as in the running collector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from podlife.podgc.guards.annotations import Marks, marks_of
from podlife.podgc.guards.budget import (
    Guard,
    GuardBook,
    Moment,
    Refusal,
)
from podlife.podgc.index import PodIndex
from podlife.podgc.planner import (
    Action,
    Plan,
    Victim,
    part_of,
    victim_for,
)
from podlife.podgc.settings import Reason, Settings
from podlife.podgc.views import Pod

__all__ = ["Census", "HeldBack", "HeldVictims", "admitted", "book_for", "census_of", "going", "hold_back"]


@dataclass(frozen=True, slots=True)
class Census:
    """How many pods there are, by namespace, and what is written on namespaces: what a plan is guarded by."""

    pods: Mapping[str, int] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Victims that one guard holds in one place."""

    refusal: Refusal
    victims: tuple[Victim, ...]

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(victim.pod for victim in self.victims)

    @property
    def is_for_a_minute(self) -> bool:
        """Whether it is lifted by time alone, soon enough for a sweep to wait."""
        return self.refusal.guard is Guard.PER_MINUTE


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
    annotations = {name: each.metadata.annotations for name, each in index.namespaces.items()}
    return Census(dict(index.counts), marks_of(annotations))


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


def admitted(book: GuardBook, victim: Victim, moment: Moment) -> Refusal | None:
    """Why the victim is held back, or None. Plans, sweeps and the running collector all ask here."""
    return book.admit(victim.pod, moment, is_deletion=victim.action is not Action.MARK)


def hold_back(
    plan: Plan, settings: Settings, moment: Moment, is_meant: Callable[[Pod], bool] = lambda pod: True
) -> Plan:
    """Split the plan into what goes if it is executed now and what guards hold back. Pods that are not meant do not go,
    but count for shares."""
    book = book_for(settings, plan, moment)
    plan = part_of(plan, is_meant)
    if book is None:
        return plan
    held, staying = HeldVictims(), set[str]()
    # Orphans last, in the order of execution: the server is asked for their node first.
    for victim in sorted(plan.victims, key=lambda victim: victim.reason is Reason.ORPHANED):
        if (refusal := admitted(book, victim, moment)) is not None:
            held.note(refusal, victim)
            staying.add(victim.pod.metadata.uid)
    for later in plan.later:
        for pod in later.pods:
            refusal = book.refusal_of(pod.metadata.namespace, moment)
            # Those that count or go by the time of day may have let go of it by then.
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
    """Each pod that would go if nothing held it: now, when a quarantine ends, or when its owner has seen the end."""
    held = (victim for each in plan.held_back for victim in each.victims)
    waiting = (waits.victim for waits in plan.waiting)
    pods = [victim.pod for victim in (*plan.victims, *held, *waiting)]
    pods += (pod for later in plan.later for pod in later.pods)
    return {pod.metadata.uid: pod for pod in pods}.values()
