"""maxUnavailable and maxSurge of a DaemonSet update. Pure.

Percentages refer to the nodes that should run the daemon and are rounded up, so that an update always makes progress.
"""

from __future__ import annotations

from dataclasses import dataclass

from podlife.workloads.daemonset.views import ROLLING_UPDATE, DaemonSet
from podlife.workloads.int_or_percent import scaled


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    max_unavailable: int
    max_surge: int


def limits_of(daemon_set: DaemonSet, desired: int) -> RolloutLimits:
    """Raises InvalidInputError for values that are neither numbers nor percentages."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update
    if strategy.type != ROLLING_UPDATE or rolling is None:
        unavailable = surge = 0
    else:
        unavailable = scaled(rolling.max_unavailable, desired, round_up=True, what="MaxUnavailable")
        surge = scaled(rolling.max_surge, desired, round_up=True, what="MaxSurge")
    if desired > 0 and unavailable == 0 and surge == 0:
        # Neither would mean never.
        unavailable = 1
    return RolloutLimits(unavailable, surge)


def allows_surge(daemon_set: DaemonSet) -> bool:
    """Whether there may be two pods on a node at all."""
    return limits_of(daemon_set, 1).max_surge > 0
