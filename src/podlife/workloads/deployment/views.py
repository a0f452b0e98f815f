"""Views of Deployments."""

from __future__ import annotations

import msgspec

from podlife.workloads.views import IntOrPercent, LabelSelectorDict, Template, Workload, scaled

RECREATE = "Recreate"
ROLLING_UPDATE = "RollingUpdate"

# The API's value for no limit.
_NO_LIMIT = 2**31 - 1
_MOST_REPLICAS = 2**31 - 1


class RollingUpdateDeployment(msgspec.Struct, rename="camel"):
    max_surge: IntOrPercent = 0
    max_unavailable: IntOrPercent = 0


class DeploymentStrategyView(msgspec.Struct, rename="camel"):
    type: str = ROLLING_UPDATE
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    paused: bool = False
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    strategy: DeploymentStrategyView = msgspec.field(default_factory=DeploymentStrategyView)
    selector: LabelSelectorDict = {}
    template: Template = {}

    @property
    def deadline_seconds(self) -> int | None:
        """The progress deadline; None if there is none."""
        seconds = self.progress_deadline_seconds
        return None if seconds == _NO_LIMIT else seconds

    @property
    def history_limit(self) -> int | None:
        """Number of old ReplicaSets to keep; None for all."""
        limit = self.revision_history_limit
        return None if limit == _NO_LIMIT else limit


class Deployment(Workload):
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)


def max_surge(deployment: Deployment) -> int:
    """Bounded, so that the total number of replicas stays valid."""
    return min(_bounds(deployment)[0], _MOST_REPLICAS - deployment.spec.replicas)


def max_unavailable(deployment: Deployment) -> int:
    """At most the number of replicas."""
    return min(_bounds(deployment)[1], deployment.spec.replicas)


def _bounds(deployment: Deployment) -> tuple[int, int]:
    spec = deployment.spec
    if spec.strategy.type != ROLLING_UPDATE:
        return 0, 0
    given = spec.strategy.rolling_update or RollingUpdateDeployment()
    surge = scaled(given.max_surge, spec.replicas, round_up=True)
    unavailable = scaled(given.max_unavailable, spec.replicas, round_up=False)
    # If both are rounded to zero, a rollout would never progress. Unavailability is chosen, since a surge may exceed a
    # quota.
    return surge, unavailable if surge or unavailable else 1
