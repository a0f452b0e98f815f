"""Which pods are collected, in which order, and why. Pure: it reads an index and changes nothing.

The default policy is upstream's: four reasons, looked at in one order (GC-05). Each pod is planned once, for the
first reason that it meets. Explaining, a dry run, a sweep and the running controller all ask here.

`reason_of` is the decision about one pod, `victims` all of them as far as they are wanted, `plan` everything at once
with what is still to come. With nothing to do each of them ends at once, however many pods there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from podlife.podgc.index import Absence, PodIndex, Verdict, order_of
from podlife.podgc.settings import Cause, Reason, RuleReason, Settings
from podlife.podgc.views import Pod

if TYPE_CHECKING:
    from podlife.podgc.guards.plan_filter import Census, HeldBack

__all__ = [
    "Action",
    "Later",
    "Plan",
    "Standing",
    "Upcoming",
    "Victim",
    "Waits",
    "due_at",
    "due_nodes",
    "due_now",
    "in_quarantine",
    "part_of",
    "plan",
    "reason_of",
    "standing_of",
    "victim_for",
    "victim_of",
    "victims",
    "wanted",
]

# How many of those that a rule lets go later are named.
_MOST_NEXT = 5


class Action(StrEnum):
    """What is done to a victim (GC-90, GC-91)."""

    DELETE = "delete"
    MARK_AND_DELETE = "mark-failed-and-delete"
    # Deleted already, and held by a finalizer whose owner may be waiting for the phase.
    MARK = "mark-failed"


class Victim(msgspec.Struct, frozen=True):
    """A Struct because a plan may hold many thousands: it is made five times as fast as a frozen dataclass."""

    pod: Pod
    reason: Cause
    action: Action
    why: str
    # The rule of the policy that chose it; "" without a policy file.
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """Pods of a missing node: collected in so many seconds, if the server does not know the node then."""

    node: str
    pods: tuple[Pod, ...]
    reason: Reason
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Upcoming:
    """How many pods a rule lets go later for one reason if nothing changes, and the next of them."""

    rule: str
    reason: RuleReason
    count: int
    # The first, in so many seconds.
    seconds: float
    next: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod stands with the policy in force."""

    # Its rule, or the reason of upstream's that lets it go; "" for neither.
    rule: str = ""
    # What spares it: a protection, or an exclude of its rule.
    protected_by: str = ""
    excluded_by: str = ""
    # Why it goes, from when on (seconds since 1970), in words; None when nothing lets it go as things are.
    reason: Cause | None = None
    due_at: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """A victim that stays until its owner has seen the end, and until when at the latest."""

    victim: Victim
    what: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    victims: tuple[Victim, ...] = ()
    later: tuple[Later, ...] = ()
    # Deleted already and held by their finalizers: nothing is left to do for a collector.
    held: tuple[Pod, ...] = ()
    upcoming: tuple[Upcoming, ...] = ()
    # How many terminated pods there are that the threshold counts, whoever was chosen.
    terminated: int = 0
    # Who would go if no guard held them; and what guards judge by, where there are any.
    held_back: tuple[HeldBack, ...] = ()
    census: Census | None = None
    # Who would go if their owners had seen the end; asked for only where somebody wants to know.
    waiting: tuple[Waits, ...] = ()


def plan(index: PodIndex, settings: Settings, now: float) -> Plan:
    """The moment is the event loop's, which quarantines are counted in; the index was told the time of day."""
    return Plan(
        tuple(victims(index, settings)),
        tuple(in_quarantine(index, settings, now)),
        tuple(index.settled),
        _upcoming(index, settings),
        index.terminated_count,
    )


def part_of(plan: Plan, is_meant: Callable[[Pod], bool]) -> Plan:
    """What of the plan is about the pods that are meant. What is still to come by rules is about all."""
    later = (replace(each, pods=tuple(pod for pod in each.pods if is_meant(pod))) for each in plan.later)
    return replace(
        plan,
        victims=tuple(victim for victim in plan.victims if is_meant(victim.pod)),
        later=tuple(each for each in later if each.pods),
        held=tuple(pod for pod in plan.held if is_meant(pod)),
        waiting=tuple(waits for waits in plan.waiting if is_meant(waits.victim.pod)),
    )


def due_now(plan: Plan, settings: Settings) -> Plan:
    """The plan with what is due at this moment among the victims, for whoever reads it. Whoever acts on it asks the
    server for the node first (GC-52)."""
    due = [later for later in plan.later if later.seconds <= 0]
    if not due:
        return plan
    orphans = (
        victim_for(
            settings, pod, later.reason, f"node {later.node} is missing; the server is asked for it first"
        )
        for later in due
        for pod in later.pods
    )
    places: dict[Cause, int] = {reason: place for place, reason in enumerate(Reason)}
    victims = sorted((*plan.victims, *orphans), key=lambda victim: places.get(victim.reason, len(places)))
    return replace(
        plan, victims=tuple(victims), later=tuple(later for later in plan.later if later.seconds > 0)
    )


def victims(index: PodIndex, settings: Settings, skip: Container[str] = ()) -> Iterator[Victim]:
    """All that can be collected now, in order, but for the UIDs to skip. The index must not change meanwhile."""
    for reason, pods in _looks(index, settings):
        for pod in pods:
            if pod.metadata.uid in skip:
                continue
            if reason is Reason.TERMINATED:
                # That it is among the first is how it was found. A spared one costs no other its life.
                is_meant = not index.is_spared(pod)
            else:
                is_meant = reason_of(index, settings, pod) is reason
            if is_meant:
                yield victim_for(settings, pod, reason, _why(index, settings, pod, reason))
    for verdict in index.verdicts(skip):
        if reason_of(index, settings, verdict.pod) is None:
            yield _chosen(settings, verdict)


def wanted(index: PodIndex, settings: Settings) -> Iterator[Pod]:
    """All that are to go now, or when the quarantine of their node ends if it is not there then."""
    for victim in victims(index, settings):
        yield victim.pod
    for each in in_quarantine(index, settings, 0.0):
        yield from each.pods


def victim_of(index: PodIndex, settings: Settings, pod: Pod) -> Victim | None:
    reason = reason_of(index, settings, pod)
    if reason is not None:
        return victim_for(settings, pod, reason, _why(index, settings, pod, reason))
    verdict = index.verdict_on(pod)
    return None if verdict is None else _chosen(settings, verdict)


def standing_of(index: PodIndex, settings: Settings, pod: Pod) -> Standing:
    """What the policy has to say of this pod, as the index holds it, now and later."""
    rule, excluded_by = index.rule_of(pod)
    standing = Standing(rule, index.protection_of(pod), excluded_by)
    if standing.protected_by:
        return standing
    if (victim := victim_of(index, settings, pod)) is not None and victim.reason in tuple(Reason):
        return replace(standing, rule=victim.rule, reason=victim.reason, due_at=-math.inf, why=victim.why)
    if (verdict := index.verdict_to_come(pod)) is not None:
        return replace(standing, reason=verdict.reason, due_at=verdict.due_at, why=verdict.why)
    return standing


def reason_of(index: PodIndex, settings: Settings, pod: Pod) -> Reason | None:
    """Which of upstream's reasons there is to collect this pod, as the index holds it, now; None for none."""
    if index.is_spared(pod):
        return None
    node, collects = pod.spec.node_name, settings.does_collect
    if collects(Reason.TERMINATED) and index.is_among_first(pod, index.excess(settings.threshold)):
        return Reason.TERMINATED
    if pod.is_terminating and node in index.out_of_service and collects(Reason.OUT_OF_SERVICE):
        return Reason.OUT_OF_SERVICE
    if pod.metadata.uid in index.orphans.get(node, ()) and collects(Reason.ORPHANED):
        return Reason.ORPHANED
    if pod.is_terminating and not node and collects(Reason.UNSCHEDULED):
        return Reason.UNSCHEDULED
    return None


def due_at(absence: Absence, settings: Settings) -> float:
    """When the server is asked whether a missing node is really gone: its quarantine runs from first sight and is
    not extended (GC-51). After a look the next is a whole quarantine away, and not sooner than a pass (GC-53)."""
    if absence.checked_at is None:
        return absence.seen_at + max(0.0, settings.quarantine_seconds)
    return absence.checked_at + max(settings.quarantine_seconds, settings.period_seconds)


def due_nodes(index: PodIndex, settings: Settings, now: float) -> list[str]:
    if not index.missing or not settings.does_collect(Reason.ORPHANED):
        return []
    return [name for name, absence in index.missing.items() if due_at(absence, settings) <= now]


def _looks(index: PodIndex, settings: Settings) -> Iterator[tuple[Reason, Iterable[Pod]]]:
    """The four ways of looking, in their order (GC-05)."""
    collects = settings.does_collect
    if collects(Reason.TERMINATED) and (excess := index.excess(settings.threshold)):
        yield Reason.TERMINATED, index.first_terminated(excess)
    if collects(Reason.OUT_OF_SERVICE):
        for node in sorted(index.out_of_service):
            yield Reason.OUT_OF_SERVICE, sorted(index.terminating_on(node), key=order_of)
    if collects(Reason.ORPHANED):
        for node, uids in index.orphans.items():
            found = (index.pod(node, uid) for uid in uids)
            yield Reason.ORPHANED, sorted((pod for pod in found if pod is not None), key=order_of)
    if collects(Reason.UNSCHEDULED):
        yield Reason.UNSCHEDULED, sorted(index.terminating_on(""), key=order_of)


def victim_for(settings: Settings, pod: Pod, reason: Cause, why: str, rule: str = "") -> Victim:
    """The pod with what is to be done to it. The rule is left out where the reason is upstream's."""
    if pod.has_ended or not settings.marks_failed:
        action = Action.DELETE
    else:
        action = Action.MARK if pod.is_held else Action.MARK_AND_DELETE
    return Victim(pod, reason, action, why, rule or upstream_rule(settings, reason))


def upstream_rule(settings: Settings, reason: Cause) -> str:
    """What one of upstream's reasons is called beside the rules of a policy."""
    return "" if settings.policy is None else f"upstream/{reason}"


def _chosen(settings: Settings, verdict: Verdict) -> Victim:
    return victim_for(settings, verdict.pod, verdict.reason, verdict.why, verdict.rule)


def _why(index: PodIndex, settings: Settings, pod: Pod, reason: Reason) -> str:
    if reason is Reason.TERMINATED:
        many = f"{index.terminated_count} terminated pods, {settings.threshold} may stay"
        return f"{many}; evicted ones go first" if pod.is_evicted else f"{many}; the oldest go first"
    if reason is Reason.OUT_OF_SERVICE:
        return f"terminating on node {pod.spec.node_name}, which is not ready and out of service"
    if reason is Reason.ORPHANED:
        return f"node {pod.spec.node_name} no longer exists"
    return "terminating, and was never scheduled"


def in_quarantine(
    index: PodIndex, settings: Settings, now: float, waiting: Container[str] = ()
) -> Iterator[Later]:
    """Pods on missing nodes that go when the quarantine ends. `waiting` has the UIDs of victims that wait for their
    owner until then."""
    if not settings.does_collect(Reason.ORPHANED):
        return
    for node, absence in index.missing.items():
        orphans = index.orphans.get(node, ())
        found = (pod for pod in index.pods_on(node) if pod.metadata.uid not in orphans)
        pods = [
            pod
            for pod in found
            if (pod.metadata.uid in waiting or victim_of(index, settings, pod) is None)
            and not index.is_spared(pod)
        ]
        if pods:
            seconds = max(0.0, due_at(absence, settings) - now)
            why = f"node {node} is missing; the server is asked for it when its quarantine ends"
            yield Later(node, tuple(sorted(pods, key=order_of)), Reason.ORPHANED, seconds, why)


def _upcoming(index: PodIndex, settings: Settings) -> tuple[Upcoming, ...]:
    counts: Counter[tuple[str, RuleReason]] = Counter()
    first: dict[tuple[str, RuleReason], list[Verdict]] = {}
    for verdict in index.verdicts_to_come():
        if reason_of(index, settings, verdict.pod) is None:
            key = (verdict.rule, verdict.reason)
            counts[key] += 1
            if counts[key] <= _MOST_NEXT:
                first.setdefault(key, []).append(verdict)
    return tuple(
        Upcoming(*key, counts[key], found[0].due_at - index.told_at, tuple(found))
        for key, found in first.items()
    )
