"""The next step of a Deployment. Pure."""

from __future__ import annotations

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.old_replica_sets import removable
from podlife.workloads.deployment.progress import is_complete
from podlife.workloads.deployment.proportional_scale import is_being_scaled, scale
from podlife.workloads.deployment.recreate import recreate
from podlife.workloads.deployment.rollback import rollback_revision
from podlife.workloads.deployment.rolling_update import roll
from podlife.workloads.deployment.rollout import Rollout, RolloutStep, active
from podlife.workloads.deployment.views import RECREATE


def next_step(rollout: Rollout) -> RolloutStep:
    """Raises InvalidInputError for an unknown strategy."""
    deployment = rollout.deployment
    if deployment.metadata.deletion_timestamp is not None:
        return RolloutStep(tells_progress=False)
    if deployment.spec.paused:
        remove = () if rollback_revision(deployment) is not None else removable(rollout)
        return RolloutStep(scale=scale(rollout), remove=remove, tells_progress=False)
    strategy = deployment.spec.strategy.type
    # Recreate has no shares: where several ReplicaSets have pods, all but one will have none soon.
    has_shares = strategy != RECREATE or len(active(rollout.replica_sets)) <= 1
    if has_shares and is_being_scaled(rollout):
        return RolloutStep(scale=scale(rollout), tells_progress=False)
    match strategy:
        case "Recreate":
            step = recreate(rollout)
        case "RollingUpdate":
            step = roll(rollout)
        case _:
            raise InvalidInputError(f"unexpected deployment strategy type: {strategy}")
    if step is not None:
        return step
    return RolloutStep(remove=removable(rollout) if is_complete(deployment, deployment.status) else ())
