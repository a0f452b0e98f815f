"""Taints of nodes: keys, the conditions they stand for, edits of taint lists, and how long a pod tolerates them. Pure.

Two taints are equal if key and effect are; value and time are ignored (NL-06). Lists hold plain dictionaries as the
server has them, so that unknown fields of a taint are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.api.node_requirement import tolerates
from podlife.nodehealth.views import MonitoredNode, NodeTaint, Toleration

TaintKey = tuple[str, str]
"""Key and effect, which identify a taint."""

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
_PREFIX = "node.kubernetes.io/"
NOT_READY: TaintKey = (f"{_PREFIX}not-ready", NO_EXECUTE)
UNREACHABLE: TaintKey = (f"{_PREFIX}unreachable", NO_EXECUTE)
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"
# By the condition and its status (NL-05, NL-60).
_OF_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY[0],
    ("Ready", "Unknown"): UNREACHABLE[0],
    ("MemoryPressure", "True"): f"{_PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{_PREFIX}disk-pressure",
    ("NetworkUnavailable", "True"): f"{_PREFIX}network-unavailable",
    ("PIDPressure", "True"): f"{_PREFIX}pid-pressure",
}
_OURS = frozenset({*_OF_CONDITIONS.values(), _UNSCHEDULABLE})
# Older labels follow the newer ones, which kubelets write.
_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}


def opposite_of(status: str) -> tuple[TaintKey, TaintKey] | None:
    """For a status of Ready, the evicting taint and the one to remove; None for a ready node."""
    match status:
        case "False":
            return NOT_READY, UNREACHABLE
        case "Unknown":
            return UNREACHABLE, NOT_READY
        case _:
            return None


def has_taint(taints: Iterable[NodeTaint], wanted: TaintKey) -> bool:
    return any((taint.key, taint.effect) == wanted for taint in taints)


def condition_taints(node: MonitoredNode) -> tuple[list[TaintKey], list[TaintKey]]:
    """NoSchedule taints to add and to remove; other keys and effects are left alone (NL-60 to NL-62)."""
    wanted = [
        (_OF_CONDITIONS[each.type, each.status], NO_SCHEDULE)
        for each in node.status.conditions
        if (each.type, each.status) in _OF_CONDITIONS
    ]
    if node.spec.unschedulable:
        wanted.append((_UNSCHEDULABLE, NO_SCHEDULE))
    present = [
        (each.key, each.effect)
        for each in node.spec.taints
        if each.effect == NO_SCHEDULE and each.key in _OURS
    ]
    return [each for each in wanted if each not in present], [each for each in present if each not in wanted]


def label_changes(labels: Mapping[str, str]) -> dict[str, str]:
    """New values for older labels of a node that are missing or differ from the newer ones."""
    return {
        older: labels[newer]
        for newer, older in _LABELS.items()
        if newer in labels and labels.get(older) != labels[newer]
    }


def made_taint(key: TaintKey, now: datetime) -> Object:
    """With timeAdded (NL-54)."""
    return {"key": key[0], "effect": key[1], "timeAdded": format_time(now)}


def with_taints(taints: Sequence[Object], added: Iterable[Object]) -> list[Object]:
    """Each replaces the taint with the same key and effect, or is appended (TN-01, TN-02)."""
    result = list(taints)
    for taint in added:
        place = next((place for place, each in enumerate(result) if _key(each) == _key(taint)), None)
        if place is None:
            result.append(taint)
        else:
            result[place] = taint
    return result


def without_taints(taints: Sequence[Object], removed: Iterable[TaintKey]) -> list[Object]:
    gone = set(removed)
    return [each for each in taints if _key(each) not in gone]


def _key(taint: Object) -> TaintKey:
    return taint.get("key", ""), taint.get("effect", "")


def evicting_taints(taints: Iterable[NodeTaint]) -> tuple[NodeTaint, ...]:
    """Only NoExecute taints evict (TE-01)."""
    return tuple(taint for taint in taints if taint.effect == NO_EXECUTE)


def seconds_to_bear(taints: Sequence[NodeTaint], tolerations: Sequence[Toleration]) -> float | None:
    """How long the taints are tolerated: infinity for always, None for not at all. If several tolerations match a
    taint, the first counts (TE-02)."""
    used = []
    for taint in taints:
        fitting = (each for each in tolerations if _fits(each, taint))
        if (first := next(fitting, None)) is None:
            return None
        used.append(first)
    return shortest(used)


def shortest(used: Sequence[Toleration]) -> float:
    """The shortest toleration; zero without tolerations (TE-03)."""
    if not used:
        return 0.0
    times = (each.toleration_seconds for each in used if each.toleration_seconds is not None)
    return float(max(0, min(times, default=math.inf)))


def _fits(toleration: Toleration, taint: NodeTaint) -> bool:
    """An empty key or effect of a toleration matches all (TE-04)."""
    return tolerates(toleration.as_mapping, key=taint.key, effect=taint.effect, value=taint.value)
