"""What taints of a node a daemon pod bears. Pure.

Daemons keep a node going, and so are not kept away by what is wrong with it: not ready, unreachable, under pressure,
closed to others. What the template tolerates itself comes first, as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.workloads.daemonset.views import Taint

__all__ = ["NO_EXECUTE", "NO_SCHEDULE", "has_untolerated", "tolerates", "with_daemon_tolerations"]

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


def has_untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration], *effects: str) -> bool:
    """Whether a taint of one of these effects keeps the pod away."""
    return any(
        taint.effect in effects and not any(tolerates(each, taint) for each in tolerations)
        for taint in taints
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect or key stands for all of them. Comparing operators are off by default in 1.36."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("key") not in (None, "", taint.key):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool((toleration.get("value") or "") == taint.value)
    return bool(operator == "Exists")


def _identity(toleration: Toleration) -> tuple[str, ...]:
    return tuple(toleration.get(name) or "" for name in ("key", "effect", "operator", "value"))
