"""Who deleted a pod, and why: from the pod, its events and its owner's events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from podlife.api.codec import Object
from podlife.api.managed_fields import field_setter
from podlife.explain.audit_deletion import Deletion, PodIdentity
from podlife.explain.audit_text import sentence
from podlife.explain.objects import (
    condition,
    controller_of,
    deleted_at,
    has_ended,
    is_terminating,
    metadata,
    moment,
    spec,
    status,
    text,
    updated,
)

_TARGETS = {
    "DeletionByPodGC": "pod GC (the collector of the cluster)",
    "DeletionByTaintManager": "taint eviction, for a NoExecute taint of its node",
    "EvictionByEvictionAPI": "an eviction: kubectl drain, an autoscaler or the descheduler",
    "PreemptionByScheduler": "the scheduler, to make room for a pod of higher priority",
    "TerminationByKubelet": "its node, under pressure or while shutting down",
}
# Events that tell of somebody who ended a pod; a node's own "Killing" only says that it obeyed.
_REASONS = {
    "TaintManagerEviction": "taint eviction",
    "Preempted": "the scheduler, to make room for a pod of higher priority",
    "Evicted": "its node, under pressure",
    "NodeShutdown": "its node, while shutting down",
    "SuccessfulDelete": "its controller",
}

AUDIT_HINT = "--audit-log FILE reads the name from the API server's audit log"
_NEVER = datetime.max.replace(tzinfo=UTC)

# What clients put before the last of many that are alike.
_COMBINED = "(combined from similar events): "

_SELECTABLE = {
    "spec.nodeName": spec,
    "spec.restartPolicy": spec,
    "spec.schedulerName": spec,
    "spec.serviceAccountName": spec,
    "status.phase": status,
}


def who_deleted(
    pod: Object,
    events: Iterable[Object],
    *,
    audited: Deletion | None = None,
    went_with: str = "",
    replicas_set_by: str = "",
) -> str:
    """A line about it; "" for a pod that nobody has deleted. What an audit log tells comes first: it alone names who
    asked. `went_with` is what else was deleted, `replicas_set_by` who changed its workload, if it is known."""
    target = condition(pod, "DisruptionTarget")
    if not is_terminating(pod) and not (has_ended(pod) and target):
        return ""
    at = deleted_at(pod)
    when = f"at {at:%Y-%m-%d %H:%M:%SZ} " if at is not None else ""
    # One that came after the deletion did not cause it: a pod that cannot end may be evicted, too.
    marked_at = moment(target.get("lastTransitionTime"))
    is_later = at is not None and marked_at is not None and marked_at > at
    is_target = text(target, "status") == "True" and not is_later
    if audited is not None:
        message = text(target, "message") if is_target else ""
        return f"{sentence(audited)}{f'; {message}' if message else ''}"
    if is_target:
        who = _TARGETS.get(text(target, "reason"), text(target, "reason"))
        return f"{when}by {who}: {text(target, 'message')}{_written_by(pod)}"
    found = why_gone(events)
    if found or went_with:
        return f"{when}{found or went_with}{f'; {replicas_set_by}' if found and replicas_set_by else ''}"
    return f"{when}by a user or program that left no trace here: {AUDIT_HINT}"


def _written_by(pod: Object) -> str:
    """Which component said that it must go, where the server keeps that."""
    path = ("f:status", "f:conditions", 'k:{"type":"DisruptionTarget"}')
    manager, _ = field_setter(metadata(pod), *path)
    return f" (written by {manager})" if manager else ""


def identity_of(pod: Object) -> PodIdentity:
    found, owner = metadata(pod), controller_of(pod)
    return PodIdentity(
        text(found, "namespace"),
        text(found, "name"),
        text(found, "uid"),
        moment(found.get("creationTimestamp")),
        (text(owner, "kind"), text(owner, "name")),
        found.get("labels") or {},
        {path: text(part(pod), path.rpartition(".")[2]) for path, part in _SELECTABLE.items()},
    )


def is_its_own(event: Object, obj: Object) -> bool:
    """Whether an event that regards an object of this name regards this very one. Some events carry no UID, and those
    of a node its name instead: they count from the creation of the object on."""
    found, uid = metadata(obj), text(event.get("involvedObject") or event.get("regarding") or {}, "uid")
    if uid not in ("", text(found, "name")):
        return uid == text(found, "uid")
    born, at = moment(found.get("creationTimestamp")), _began(event)
    is_node = not text(found, "namespace")
    return is_node or born is None or at is None or at >= born


def events_of_last(events: Sequence[Object], name: str, uid: str = "") -> list[Object]:
    """The events of the last of several deleted pods of one name, or of the one with this UID. Events that
    carry no UID are the last one's if they came after its first."""
    dated = [
        (at.timestamp() if (at := updated(each)) else 0.0, each) for each in events if is_about(each, name)
    ]
    ours = [each for _, each in sorted(dated, key=lambda pair: pair[0])]
    if uid:
        return [each for each in ours if _pod_uid(each, name) == uid]
    last = last_uid(ours, name)
    if not last or {uid for each in ours if (uid := _pod_uid(each, name))} == {last}:
        return ours
    began = min(_began(each) or _NEVER for each in ours if _pod_uid(each, name) == last)
    return [
        each
        for each in ours
        if _pod_uid(each, name) == last or (not _pod_uid(each, name) and (_began(each) or began) >= began)
    ]


def last_uid(events: Sequence[Object], name: str) -> str:
    """Of the pod of this name that the last of these events regards; "" where none tells."""
    return next((uid for each in reversed(events) if (uid := _pod_uid(each, name))), "")


def _pod_uid(event: Object, name: str) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return text(about, "uid") if (text(about, "kind"), text(about, "name")) == ("Pod", name) else ""


def _began(event: Object) -> datetime | None:
    return moment(event.get("firstTimestamp")) or moment(event.get("eventTime")) or updated(event)


def why_gone(events: Iterable[Object]) -> str:
    """From events alone, the last that tells."""
    for event in reversed(list(events)):
        reason = text(event, "reason")
        message = " ".join(text(event, "message").split()).removeprefix(_COMBINED)
        if message.startswith("Cancelling deletion"):
            continue
        if message.startswith("podlife-gc deleted pod"):
            return f"by podlife gc: {message}"
        if reason in _REASONS:
            source = text(event.get("source") or {}, "component") or text(event, "reportingComponent")
            return f"by {_REASONS[reason]}{f' ({source})' if source else ''}: {message}"
    return ""


def is_about(event: Object, name: str) -> bool:
    """Whether an event of an owner or of the namespace tells of a pod of this name."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    if text(about, "kind") == "Pod":
        return text(about, "name") == name
    # Event messages are untrusted: the namespace is bounded so that matching stays linear.
    return (
        re.search(
            rf"(?i)\bpods?\b[: ]\s*\"?([^\s/]{{1,63}}/)?{re.escape(name)}(?![\w.-]*\w)",
            text(event, "message"),
        )
        is not None
    )
