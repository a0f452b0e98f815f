"""Selects the pods to collect, in order, with the reason for each. Pure: reads an index and changes nothing.

Upstream's four reasons come first, in a fixed order (GC-05), then the rules of a policy. Each pod is planned once, for
the first reason that applies. `explain`, dry runs, sweeps and the running controller all use these functions.

`reason_of` evaluates one pod, `victims` yields all of them lazily, `plan` returns everything, with what is still to
come. If there is nothing to do, each returns immediately, however many pods there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

from podlife.podgc.classifier import RuleVerdict, order_of
from podlife.podgc.index import PodIndex
from podlife.podgc.plan import Action, Later, Plan, Upcoming, Victim
from podlife.podgc.quarantine import ends_at
from podlife.podgc.reasons import Cause, Reason, RuleReason
from podlife.podgc.settings import Settings
from podlife.podgc.views import Pod

# How many upcoming pods of a rule are listed.
_MOST_NEXT = 5


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """How the policy in force treats one pod."""

    # Its rule, or the upstream reason that applies; "" for neither.
    rule: str = ""
    # What keeps it: a protection, or an exclude of its rule.
    protected_by: str = ""
    excluded_by: str = ""
    # Why it is collected, and from when on (seconds since 1970); None if it is kept.
    reason: Cause | None = None
    due_at: float | None = None
    why: str = ""


def plan(index: PodIndex, settings: Settings, now: float) -> Plan:
    """`now` is the event loop's time, which quarantines use; the index has the time of day."""
    return Plan(
        tuple(victims(index, settings)),
        tuple(in_quarantine(index, settings, now)),
        tuple(index.settled),
        _upcoming(index, settings),
        index.terminated_count,
    )


def part_of(plan: Plan, is_meant: Callable[[Pod], bool]) -> Plan:
    """The part of the plan about these pods. Pods that rules will release later are not filtered."""
    later = (replace(each, pods=tuple(pod for pod in each.pods if is_meant(pod))) for each in plan.later)
    return replace(
        plan,
        victims=tuple(victim for victim in plan.victims if is_meant(victim.pod)),
        later=tuple(each for each in later if each.pods),
        held=tuple(pod for pod in plan.held if is_meant(pod)),
        waiting=tuple(waits for waits in plan.waiting if is_meant(waits.victim.pod)),
    )


def due_now(plan: Plan, settings: Settings) -> Plan:
    """Move pods whose quarantine is over to the victims. Before they are removed, the server is asked for the node
    (GC-52)."""
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
    """All pods to collect now, in order, except for these UIDs. The index must not change during iteration."""
    for reason, pods in _candidates(index, settings):
        for pod in pods:
            if pod.metadata.uid in skip:
                continue
            if reason is Reason.TERMINATED:
                # It is among the first by construction. A protected pod does not cause another one to be deleted.
                is_meant = not index.classifier.protection_of(pod)
            else:
                is_meant = reason_of(index, settings, pod) is reason
            if is_meant:
                yield victim_for(settings, pod, reason, _why(index, settings, pod, reason))
    for verdict in index.classifier.verdicts(skip):
        if reason_of(index, settings, verdict.pod) is None:
            yield _chosen(settings, verdict)


def wanted(index: PodIndex, settings: Settings) -> Iterator[Pod]:
    """All pods to collect now, or when the quarantine of their node ends."""
    for victim in victims(index, settings):
        yield victim.pod
    for each in in_quarantine(index, settings, 0.0):
        yield from each.pods


def victim_of(index: PodIndex, settings: Settings, pod: Pod) -> Victim | None:
    reason = reason_of(index, settings, pod)
    if reason is not None:
        return victim_for(settings, pod, reason, _why(index, settings, pod, reason))
    verdict = index.classifier.verdict_on(pod)
    return None if verdict is None else _chosen(settings, verdict)


def standing_of(index: PodIndex, settings: Settings, pod: Pod) -> PolicyStanding:
    """What the policy says about this pod, as the index has it, now and later."""
    rule, excluded_by = index.classifier.rule_of(pod)
    standing = PolicyStanding(rule, index.classifier.protection_of(pod), excluded_by)
    if standing.protected_by:
        return standing
    if (victim := victim_of(index, settings, pod)) is not None and victim.reason in tuple(Reason):
        return replace(standing, rule=victim.rule, reason=victim.reason, due_at=-math.inf, why=victim.why)
    if (verdict := index.classifier.verdict_to_come(pod)) is not None:
        return replace(standing, reason=verdict.reason, due_at=verdict.due_at, why=verdict.why)
    return standing


def reason_of(index: PodIndex, settings: Settings, pod: Pod) -> Reason | None:
    """The upstream reason to collect this pod now, as the index has it, or None."""
    if index.classifier.protection_of(pod):
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


def _candidates(index: PodIndex, settings: Settings) -> Iterator[tuple[Reason, Iterable[Pod]]]:
    """Candidates for the four upstream reasons, in order (GC-05)."""
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
    """The pod as a victim. `rule` is omitted for upstream reasons."""
    if pod.has_ended or not settings.marks_failed:
        action = Action.DELETE
    else:
        action = Action.MARK if pod.is_held else Action.MARK_AND_DELETE
    return Victim(pod, reason, action, why, rule or upstream_rule(settings, reason))


def upstream_rule(settings: Settings, reason: Cause) -> str:
    """The rule name of an upstream reason, beside the rules of a policy."""
    return "" if settings.policy is None else f"upstream/{reason}"


def _chosen(settings: Settings, verdict: RuleVerdict) -> Victim:
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
    """Pods on missing nodes, collected when the quarantine ends. `waiting` has the UIDs of victims that wait for
    their owner."""
    if not settings.does_collect(Reason.ORPHANED):
        return
    for node, absence in index.missing.items():
        orphans = index.orphans.get(node, ())
        found = (pod for pod in index.pods_on(node) if pod.metadata.uid not in orphans)
        pods = [
            pod
            for pod in found
            if (pod.metadata.uid in waiting or victim_of(index, settings, pod) is None)
            and not index.classifier.protection_of(pod)
        ]
        if pods:
            seconds = max(0.0, ends_at(absence, settings) - now)
            why = f"node {node} is missing; the server is asked for it when its quarantine ends"
            yield Later(node, tuple(sorted(pods, key=order_of)), Reason.ORPHANED, seconds, why)


def _upcoming(index: PodIndex, settings: Settings) -> tuple[Upcoming, ...]:
    counts: Counter[tuple[str, RuleReason]] = Counter()
    first: dict[tuple[str, RuleReason], list[RuleVerdict]] = {}
    for verdict in index.classifier.verdicts_to_come():
        if reason_of(index, settings, verdict.pod) is None:
            key = (verdict.rule, verdict.reason)
            counts[key] += 1
            if counts[key] <= _MOST_NEXT:
                first.setdefault(key, []).append(verdict)
    return tuple(
        Upcoming(*key, counts[key], found[0].due_at - index.classifier.now, tuple(found))
        for key, found in first.items()
    )
