"""Deployments: the pods of one template replaced by those of another, without a gap or with one."""

from podlife.workloads.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]
