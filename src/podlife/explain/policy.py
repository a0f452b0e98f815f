"""What the collector's policy means for a pod: its rule, when it is deleted, what keeps it. Pure.

The collector's own code, which is passed in, decides; this module adds words and commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.selectors import parse_label_selector
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot, PolicyHold, PolicyStatus
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.finished_pods import KEEP_UNTIL, ended_at, protection_causes
from podlife.explain.objects import deleted_at, has_ended, is_terminating, metadata, moment, spec, text
from podlife.explain.risks import FORCED

_COLLECTOR = "podlife gc"
_OWNER_HAS_SEEN = "podlife.dev/owner-has-seen"
# What upstream's policy does is told where its own rules are asked.
_TOLD = ("out-of-service", "orphaned", "unscheduled")
_BY_HAND = "Somebody wanted it to stay: what it was and what it said is gone with it."


def policy_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """What keeps a pod that is for the collector; without a policy, its own annotation."""
    standing = world.rules.standing(pod)
    if standing is None:
        yield from protection_causes(world, pod)
        return
    if not _is_for_collector(world, pod) and KEEP_UNTIL not in _annotations(pod):
        return
    if standing.protected_by:
        yield _protected(world, pod, standing.protected_by)
    elif standing.excluded_by and not standing.reason:
        if not _is_upstreams(world, pod):
            yield _excluded(world, pod, standing.excluded_by)
    elif standing.guard is not None:
        yield _guarded(world, pod, standing, standing.guard)
    elif standing.owner is not None:
        yield _waiting(pod, standing, standing.owner)


def policy_upcoming(world: ClusterSnapshot, pod: Object) -> Iterator[UpcomingAction]:
    standing = world.rules.standing(pod)
    if standing is None:
        return
    if standing.protected_by:
        yield UpcomingAction(_COLLECTOR, f"leaves it alone: protected by {standing.protected_by}")
    elif standing.reason and standing.reason not in _TOLD:
        yield _goes(world, standing)
    elif _is_upstreams(world, pod):
        return
    elif standing.excluded_by and not standing.reason:
        yield UpcomingAction(_COLLECTOR, f"leaves it alone: {standing.excluded_by}")
    elif standing.rule:
        yield UpcomingAction(
            _COLLECTOR, f"has it under rule {standing.rule}, which lets it go at no time as things are"
        )


def _goes(world: ClusterSnapshot, standing: PolicyStatus) -> UpcomingAction:
    by = f"by rule {standing.rule}" if standing.rule else "by upstream's policy"
    # A moment long past is now.
    at = max(standing.due_at, world.now) if standing.due_at is not None else world.now
    unless = ""
    if standing.guard is not None:
        unless = f", unless it is still held back then: {standing.guard.why}"
    elif standing.owner is not None:
        unless, at = ", sooner if its owner has seen the end", standing.owner.until or at
    elif standing.waits_for_owner:
        unless = ", unless its owner has not seen the end by then"
    return UpcomingAction(_COLLECTOR, f"deletes it {by} ({standing.reason}: {standing.why}){unless}", at)


def _is_upstreams(world: ClusterSnapshot, pod: Object) -> bool:
    """Whether it goes by one of upstream's reasons, now or soon: only a protection keeps a pod from those, and no rule
    and no exclude. That it does is told where they are asked."""
    is_known = world.nodes is not None or not text(spec(pod), "nodeName")
    return is_known and world.rules.collect(pod, world.node_of(pod)) is not None


def _is_for_collector(world: ClusterSnapshot, pod: Object) -> bool:
    return has_ended(pod) or is_terminating(pod) or world.is_node_gone(pod)


def _deleted(world: ClusterSnapshot, pod: Object, risk: str) -> Remedy:
    """By hand. One that was asked to end already, or has nobody who would end it, only goes without a grace."""
    if is_terminating(pod) or (world.is_node_gone(pod) and not has_ended(pod)):
        return Remedy(commands.delete(pod, 0), f"{risk} {FORCED}")
    return Remedy(commands.delete(pod), risk)


def _protected(world: ClusterSnapshot, pod: Object, by: str) -> Cause:
    # From the text, not from the annotation: a policy may limit it (maxKeepUntil).
    until = moment(by.rpartition("until ")[2]) if KEEP_UNTIL in by else None
    wait = (UpcomingAction(_COLLECTOR, "may collect it from then on", until),) if until is not None else ()
    said = f"protected from podlife's collector by {by}"
    return Cause("protected", said, _since(pod), (_unprotect(world, pod, by),), wait, is_stuck=False)


def _unprotect(world: ClusterSnapshot, pod: Object, by: str) -> Remedy:
    """Taken off where it is the pod's own; what the policy says of others is not changed by a command."""
    what, _, rest = by.partition(" ")
    words = [text(metadata(pod), "name"), *commands.namespace_flag(pod)]
    if what == "annotation":
        key = rest.partition(",")[0].partition("=")[0]
        return Remedy(
            commands.kubectl("annotate", "pod", *words, f"{key}-"),
            "The collector may delete it from then on.",
        )
    if what == "labels" and (key := _label_to_take(rest, metadata(pod).get("labels") or {})):
        return Remedy(
            commands.kubectl("label", "pod", *words, f"{key}-"),
            "The collector may delete it from then on; others may select pods by the label too.",
        )
    return _deleted(world, pod, _BY_HAND)


def _label_to_take(selector: str, labels: dict[str, str]) -> str:
    """A label without which the selector does not hold."""
    try:
        found = parse_label_selector(selector)
    except ValueError:
        return ""
    for key in (each.key for each in found.requirements):
        without = {name: value for name, value in labels.items() if name != key}
        if key in labels and not found.matches(without):
            return key
    return ""


def _excluded(world: ClusterSnapshot, pod: Object, by: str) -> Cause:
    said = f"left alone by podlife's collector: {by} takes it out"
    return Cause("excluded", said, _since(pod), (_deleted(world, pod, _BY_HAND),), is_stuck=False)


def _guarded(world: ClusterSnapshot, pod: Object, standing: PolicyStatus, guard: PolicyHold) -> Cause:
    said = f"podlife's collector would delete it ({_named(standing)}), and is held back: {guard.why}"
    remedies = [Remedy(guard.lifted_by, "All that is held back by it goes, and not this pod alone.")]
    remedies = remedies if guard.lifted_by else []
    remedies.append(_deleted(world, pod, "Past the guard, which is there for a reason."))
    wait = UpcomingAction(_COLLECTOR, "goes on", guard.until)
    upcoming = () if guard.until is None else (wait,)
    return Cause(
        "held-by-guard", said, _since(pod), tuple(remedies), upcoming, is_stuck=guard.is_for_a_person
    )


def _waiting(pod: Object, standing: PolicyStatus, owner: PolicyHold) -> Cause:
    found = metadata(pod)
    # With the UID: a pod that was made anew under the name has not been seen by anybody.
    body = {"metadata": {"uid": text(found, "uid"), "annotations": {_OWNER_HAS_SEEN: "true"}}}
    remedy = Remedy(
        commands.patch("pod", pod, body, type_="merge"),
        "What the owner has not seen of the pod it will never see: it may count wrongly, or run the work again.",
    )
    said = f"podlife's collector would delete it ({_named(standing)}), and waits for its owner: {owner.why}"
    wait = UpcomingAction(_COLLECTOR, "deletes it whether its owner has seen the end or not", owner.until)
    return Cause("waits-for-owner", said, _since(pod), (remedy,), (wait,), is_stuck=False)


def _named(standing: PolicyStatus) -> str:
    return f"rule {standing.rule}, {standing.reason}" if standing.rule else standing.reason


def _since(pod: Object) -> datetime | None:
    return deleted_at(pod) or ended_at(pod)


def _annotations(pod: Object) -> dict[str, str]:
    return metadata(pod).get("annotations") or {}
