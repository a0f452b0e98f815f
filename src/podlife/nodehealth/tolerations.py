"""How long a pod tolerates the taints of its node. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from podlife.api.node_requirement import tolerates
from podlife.nodehealth.taints import NO_EXECUTE
from podlife.nodehealth.views import NodeTaint, Toleration


def evicting_taints(taints: Iterable[NodeTaint]) -> tuple[NodeTaint, ...]:
    """Only NoExecute taints evict (TE-01)."""
    return tuple(taint for taint in taints if taint.effect == NO_EXECUTE)


def seconds_to_bear(taints: Sequence[NodeTaint], tolerations: Sequence[Toleration]) -> float | None:
    """Infinity for ever, None when one of them is not borne at all. Of several tolerations that fit a taint the first
    counts, whatever the others say (TE-02)."""
    used = []
    for taint in taints:
        fitting = (each for each in tolerations if _fits(each, taint))
        if (first := next(fitting, None)) is None:
            return None
        used.append(first)
    return shortest(used)


def shortest(used: Sequence[Toleration]) -> float:
    """The shortest of them; zero if there is none (TE-03)."""
    if not used:
        return 0.0
    times = (each.toleration_seconds for each in used if each.toleration_seconds is not None)
    return float(max(0, min(times, default=math.inf)))


def _fits(toleration: Toleration, taint: NodeTaint) -> bool:
    """An empty key or effect of a toleration matches all (TE-04)."""
    return tolerates(toleration.as_mapping, key=taint.key, effect=taint.effect, value=taint.value)
