"""The Recreate strategy: no pod of the new template starts before all old pods are gone. Pure."""

from __future__ import annotations

from podlife.workloads.deployment.rollout import Rollout, RolloutStep, Scale, active, total


def recreate(rollout: Rollout) -> RolloutStep | None:
    """None when there is nothing more to scale."""
    if running := active(rollout.old):
        return RolloutStep(scale=tuple(Scale(each, 0) for each in running))
    if rollout.has_old_pods or total(rollout.old, "replicas"):
        return RolloutStep()
    replicas = rollout.deployment.spec.replicas
    if rollout.new is None:
        return RolloutStep(create=replicas)
    if rollout.new.spec.replicas != replicas:
        return RolloutStep(scale=(Scale(rollout.new, replicas),))
    return None
