"""Deployment controller: replaces the pods of one template by those of another."""

from podlife.workloads.deployment.controller import DeploymentController

__all__ = ["DeploymentController"]
