"""Taints that daemon pods tolerate. Pure.

Daemons are needed on broken nodes and are not kept away from nodes that are not ready, unreachable, under pressure or
unschedulable. The template's own tolerations come first, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.api.node_requirement import tolerates
from podlife.workloads.daemonset.views import DaemonNodeTaint

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

Toleration = Mapping[str, Any]

_FOR_ALL = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
# What uses the node's own network may be what makes it available.
_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def with_daemon_tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tolerations of a daemon pod with this pod spec. One of the template that says the same for a limited time
    is said without the limit."""
    tolerations = [dict(each) for each in spec.get("tolerations") or ()]
    wanted = (*_FOR_ALL, _ON_HOST_NETWORK) if spec.get("hostNetwork") else _FOR_ALL
    for key, effect in wanted:
        added = {"key": key, "operator": "Exists", "effect": effect}
        same = [index for index, each in enumerate(tolerations) if _identity(each) == _identity(added)]
        for index in same:
            tolerations[index] = added
        if not same:
            tolerations.append(added)
    return tolerations


def has_untolerated(
    taints: Iterable[DaemonNodeTaint], tolerations: Sequence[Toleration], *effects: str
) -> bool:
    """Whether a taint of one of these effects keeps the pod away."""
    return any(
        taint.effect in effects and not any(_is_about(each, taint) for each in tolerations)
        for taint in taints
    )


def _is_about(toleration: Toleration, taint: DaemonNodeTaint) -> bool:
    return tolerates(toleration, key=taint.key, effect=taint.effect, value=taint.value)


def _identity(toleration: Toleration) -> tuple[str, ...]:
    return tuple(toleration.get(name) or "" for name in ("key", "effect", "operator", "value"))
