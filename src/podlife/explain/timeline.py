"""The history of an object from what is still recorded about it. Pure.

Conditions keep their last change only and events expire after an hour, so the history may be incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from podlife.api.codec import Object
from podlife.explain.audit_deletion import PodIdentity, happenings
from podlife.explain.audit_log import AuditedRequest
from podlife.explain.audit_text import who_asked
from podlife.explain.explanation import Happening
from podlife.explain.objects import (
    all_statuses,
    deleted_at,
    items,
    metadata,
    moment,
    spec,
    status,
    text,
    updated,
)

MOST_HAPPENINGS = 200
_KINDS = {
    "Scheduled": "scheduled",
    "Unhealthy": "unhealthy",
    "Evicted": "evicted",
    "Preempted": "evicted",
    "TaintManagerEviction": "evicted",
    # The agent reports it before the preStop hook, and sends TERM after it.
    "Killing": "term",
}
_KILLED = 137


def timeline_of(
    obj: Object, events: Sequence[Object], more: Iterable[Happening] = ()
) -> tuple[Happening, ...]:
    """The oldest first; of very many the last."""
    found = [*_life(obj), *_conditions(obj), *_containers(obj), *told_by(events, hooked(obj)), *more]
    return tuple(sorted(found, key=lambda each: each.at)[-MOST_HAPPENINGS:])


def hooked(pod: Object) -> frozenset[str]:
    """Its containers with a preStop hook."""
    every = [*items(spec(pod), "initContainers"), *items(spec(pod), "containers")]
    return frozenset(text(each, "name") for each in every if (each.get("lifecycle") or {}).get("preStop"))


def told_by(events: Iterable[Object], hooks: frozenset[str] = frozenset()) -> Iterator[Happening]:
    """`hooks` are the containers that have a preStop hook."""
    for event in events:
        at = updated(event)
        if at is None:
            continue
        count = (event.get("series") or {}).get("count") or event.get("count") or 1
        times = f" (x{count})" if count > 1 else ""
        what = f"{text(event, 'reason')}: {' '.join(text(event, 'message').split())}{times}"
        yield Happening(at, what, _who(event), _kind(event, hooks))


def _kind(event: Object, hooks: frozenset[str]) -> str:
    kind = _KINDS.get(text(event, "reason")) or ("warning" if text(event, "type") == "Warning" else "event")
    # "spec.containers{main}"
    container = text(event.get("involvedObject") or {}, "fieldPath").rpartition("{")[2].removesuffix("}")
    return "prestop" if kind == "term" and container in hooks else kind


def told_by_audit(requests: Sequence[AuditedRequest], pod: PodIdentity) -> Iterator[Happening]:
    for each in happenings(requests, pod):
        verb = "eviction" if each.is_eviction else each.verb
        kind = {"eviction": "evicted", "delete": "delete"}.get(verb, "event")
        yield Happening(each.at, f"{verb} requested by {who_asked(each)}", "audit log", kind)


def told_of_node_by_audit(requests: Iterable[AuditedRequest], name: str) -> Iterator[Happening]:
    for each in requests:
        if (each.resource, each.name) == ("nodes", name) and each.taints is not None:
            taints = ", ".join(f"{key}:{effect}" for key, effect in each.taints) or "none"
            more = "" if each.is_all_taints else "more "
            yield Happening(
                each.at,
                f"{each.verb} to {more}taints ({taints}) requested by {who_asked(each)}",
                "audit log",
                "taint",
            )


def _who(event: Object) -> str:
    source = event.get("source") or {}
    return (
        text(source, "component") or text(event, "reportingComponent") or text(event, "reportingController")
    )


def _life(obj: Object) -> Iterator[Happening]:
    found = metadata(obj)
    yield from _at(moment(found.get("creationTimestamp")), "created", "created")
    grace = found.get("deletionGracePeriodSeconds")
    within = f" (grace {grace} s)" if grace is not None else ""
    yield from _at(deleted_at(obj), f"deletion asked for{within}", "delete")
    yield from _at(moment(status(obj).get("startTime")), "accepted by the node", "event")


def _conditions(obj: Object) -> Iterator[Happening]:
    for each in items(status(obj), "conditions"):
        why = ": ".join(part for part in (text(each, "reason"), text(each, "message")) if part)
        what = f"{text(each, 'type')} became {text(each, 'status')}{f' ({why})' if why else ''}"
        is_scheduled = (text(each, "type"), text(each, "status")) == ("PodScheduled", "True")
        kind = "scheduled" if is_scheduled else "condition"
        yield from _at(moment(each.get("lastTransitionTime")), what, kind)


def _containers(obj: Object) -> Iterator[Happening]:
    for each, is_init in all_statuses(obj):
        title = f"{'init container' if is_init else 'container'} {text(each, 'name')}"
        for field in ("lastState", "state"):
            state = each.get(field) or {}
            running, ended = state.get("running") or {}, state.get("terminated") or {}
            again = bool(each.get("restartCount")) and field == "state"
            started_at = moment(running.get("startedAt") or ended.get("startedAt"))
            yield from _at(started_at, f"{title} started", "restarted" if again else "started")
            reason = f" ({text(ended, 'reason')})" if text(ended, "reason") else ""
            what = f"{title} ended with exit code {ended.get('exitCode')}{reason}"
            ended_at, asked_at = moment(ended.get("finishedAt")), deleted_at(obj)
            is_asked = ended_at is not None and asked_at is not None and ended_at >= asked_at
            is_killed = is_asked and ended.get("exitCode") == _KILLED
            yield from _at(ended_at, what, "kill" if is_killed else "ended")


def _at(at: datetime | None, what: str, kind: str) -> Iterator[Happening]:
    if at is not None:
        yield Happening(at, what, kind=kind)
