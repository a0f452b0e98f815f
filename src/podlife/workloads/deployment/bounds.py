"""How many pods there may be too many, and how many may be missing, while a Deployment is rolled out. Pure."""

from __future__ import annotations

import re

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.views import ROLLING_UPDATE, Deployment, IntOrPercent, RollingUpdate

__all__ = ["max_surge", "max_unavailable", "scaled"]

# More than fits 64 bits is a number to nobody.
_PERCENT = re.compile(r"([0-9]{1,18})%", re.ASCII)
_MOST_REPLICAS = 2**31 - 1


def max_surge(deployment: Deployment) -> int:
    """No more than leaves a number of replicas that can be asked for."""
    return min(_bounds(deployment)[0], _MOST_REPLICAS - deployment.spec.replicas)


def max_unavailable(deployment: Deployment) -> int:
    """Never more than there are to be at all."""
    return min(_bounds(deployment)[1], deployment.spec.replicas)


def _bounds(deployment: Deployment) -> tuple[int, int]:
    spec = deployment.spec
    if spec.strategy.type != ROLLING_UPDATE:
        return 0, 0
    given = spec.strategy.rolling_update or RollingUpdate()
    surge = scaled(given.max_surge, spec.replicas, round_up=True)
    unavailable = scaled(given.max_unavailable, spec.replicas, round_up=False)
    # Both may come to nothing by rounding, and then no rollout would ever get on; a surge may not fit a quota.
    return surge, unavailable if surge or unavailable else 1


def scaled(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """A number as it is, a percentage of the total. Raises InvalidInputError for anything else."""
    if isinstance(value, int):
        return value
    if (percent := _PERCENT.fullmatch(value)) is None:
        raise InvalidInputError(f"{value[:40]!r} is neither a number nor a percentage")
    hundredfold = int(percent[1]) * total
    return -(-hundredfold // 100) if round_up else hundredfold // 100
