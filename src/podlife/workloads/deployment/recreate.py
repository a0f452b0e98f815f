"""Recreate: nothing of the new template runs before everything of the old ones is gone. Pure."""

from __future__ import annotations

from podlife.workloads.deployment.rollout import Rollout, Scale, Step, active, total

__all__ = ["recreate"]


def recreate(rollout: Rollout) -> Step | None:
    """None when there is nothing more to scale."""
    if running := active(rollout.old):
        return Step(scale=tuple(Scale(each, 0) for each in running))
    if rollout.has_old_pods or total(rollout.old, "replicas"):
        return Step()
    replicas = rollout.deployment.spec.replicas
    if rollout.new is None:
        return Step(create=replicas)
    if rollout.new.spec.replicas != replicas:
        return Step(scale=(Scale(rollout.new, replicas),))
    return None
