"""maxSurge and maxUnavailable of a Deployment. Pure."""

from __future__ import annotations

from podlife.workloads.deployment.views import ROLLING_UPDATE, Deployment, RollingUpdateDeployment
from podlife.workloads.int_or_percent import scaled

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
    given = spec.strategy.rolling_update or RollingUpdateDeployment()
    surge = scaled(given.max_surge, spec.replicas, round_up=True)
    unavailable = scaled(given.max_unavailable, spec.replicas, round_up=False)
    # Both may come to nothing by rounding, and then no rollout would ever get on; a surge may not fit a quota.
    return surge, unavailable if surge or unavailable else 1
