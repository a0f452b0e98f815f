"""Who deleted a pod, and why, from what is written down: on it, in events about it, and in its owner's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from podlife.api.codec import Object
from podlife.explain.objects import condition, deleted_at, has_ended, is_terminating, text

__all__ = ["is_about", "who_deleted", "why_gone"]

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

# What clients put before the last of many that are alike.
_COMBINED = "(combined from similar events): "


def who_deleted(pod: Object, events: Iterable[Object], went_with: str = "") -> str:
    """A line about it; "" for a pod that nobody has deleted. `went_with` is what else was deleted, if it is known."""
    target = condition(pod, "DisruptionTarget")
    if not is_terminating(pod) and not (has_ended(pod) and target):
        return ""
    at = deleted_at(pod)
    when = f"at {at:%Y-%m-%d %H:%M:%SZ} " if at is not None else ""
    if text(target, "status") == "True":
        who = _TARGETS.get(text(target, "reason"), text(target, "reason"))
        return f"{when}by {who}: {text(target, 'message')}"
    found = why_gone(events)
    if found or went_with:
        return f"{when}{found or went_with}"
    return f"{when}by somebody who left no note, a person as a rule: the server's audit log knows"


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
    # Whoever may write events may write long ones: what stands before a slash is bounded, as a namespace's name is.
    return (
        re.search(
            rf"(?i)\bpods?\b[: ]\s*\"?([^\s/]{{1,63}}/)?{re.escape(name)}(?![\w.-]*\w)",
            text(event, "message"),
        )
        is not None
    )
