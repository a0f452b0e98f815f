"""Which pods are collected, in which order, and why. Pure: it reads an index and changes nothing.

The default policy is upstream's: four reasons, looked at in one order (GC-05). Each pod is planned once, for the
first reason that it meets. Explaining, a dry run, a sweep and the running controller all ask here.

`reason_of` is the decision about one pod, `victims` all of them as far as they are wanted, `plan` everything at once
with what is still to come. With nothing to do each of them ends at once, however many pods there are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from podlife.podgc.index import Absence, PodIndex, order_of
from podlife.podgc.settings import Reason, Settings
from podlife.podgc.views import Pod

__all__ = [
    "Action",
    "Later",
    "Plan",
    "Victim",
    "due_at",
    "due_nodes",
    "due_now",
    "plan",
    "reason_of",
    "victim_for",
    "victim_of",
    "victims",
]


class Action(StrEnum):
    """What is done to a victim (GC-90, GC-91)."""

    DELETE = "delete"
    MARK_AND_DELETE = "mark-failed-and-delete"
    # Deleted already, and held by a finalizer whose owner may be waiting for the phase.
    MARK = "mark-failed"


class Victim(msgspec.Struct, frozen=True):
    """A Struct because a plan may hold many thousands: it is made five times as fast as a frozen dataclass."""

    pod: Pod
    reason: Reason
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
class Plan:
    victims: tuple[Victim, ...] = ()
    later: tuple[Later, ...] = ()
    # Deleted already and held by their finalizers: nothing is left to do for a collector.
    held: tuple[Pod, ...] = ()


def plan(index: PodIndex, settings: Settings, now: float) -> Plan:
    return Plan(tuple(victims(index, settings)), tuple(_later(index, settings, now)), tuple(index.settled))


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
    places = {reason: place for place, reason in enumerate(Reason)}
    victims = sorted((*plan.victims, *orphans), key=lambda victim: places[victim.reason])
    return Plan(tuple(victims), tuple(later for later in plan.later if later.seconds > 0), plan.held)


def victims(index: PodIndex, settings: Settings, skip: Container[str] = ()) -> Iterator[Victim]:
    """All that can be collected now, in order, but for the UIDs to skip. The index must not change meanwhile."""
    for reason, pods in _looks(index, settings):
        for pod in pods:
            if pod.metadata.uid in skip:
                continue
            if reason is Reason.TERMINATED or reason_of(index, settings, pod) is reason:
                yield victim_for(settings, pod, reason, _why(index, settings, pod, reason))


def victim_of(index: PodIndex, settings: Settings, pod: Pod) -> Victim | None:
    reason = reason_of(index, settings, pod)
    if reason is None:
        return None
    return victim_for(settings, pod, reason, _why(index, settings, pod, reason))


def reason_of(index: PodIndex, settings: Settings, pod: Pod) -> Reason | None:
    """Why this pod, as the index holds it, is to be collected now; None when it is not."""
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


def victim_for(settings: Settings, pod: Pod, reason: Reason, why: str) -> Victim:
    """The pod with what is to be done to it."""
    if pod.has_ended or not settings.marks_failed:
        action = Action.DELETE
    else:
        action = Action.MARK if pod.is_held else Action.MARK_AND_DELETE
    return Victim(pod, reason, action, why)


def _why(index: PodIndex, settings: Settings, pod: Pod, reason: Reason) -> str:
    if reason is Reason.TERMINATED:
        many = f"{index.terminated_count} terminated pods, {settings.threshold} may stay"
        return f"{many}; evicted ones go first" if pod.is_evicted else f"{many}; the oldest go first"
    if reason is Reason.OUT_OF_SERVICE:
        return f"terminating on node {pod.spec.node_name}, which is not ready and out of service"
    if reason is Reason.ORPHANED:
        return f"node {pod.spec.node_name} no longer exists"
    return "terminating, and was never scheduled"


def _later(index: PodIndex, settings: Settings, now: float) -> Iterator[Later]:
    if not settings.does_collect(Reason.ORPHANED):
        return
    for node, absence in index.missing.items():
        orphans = index.orphans.get(node, ())
        waiting = (pod for pod in index.pods_on(node) if pod.metadata.uid not in orphans)
        pods = [pod for pod in waiting if reason_of(index, settings, pod) is None]
        if pods:
            seconds = max(0.0, due_at(absence, settings) - now)
            why = f"node {node} is missing; the server is asked for it when its quarantine ends"
            yield Later(node, tuple(sorted(pods, key=order_of)), Reason.ORPHANED, seconds, why)
