"""Controllers of Kubernetes' workloads.

Each runs against any API server: with `podlife controllers run`, or in your own program with a `ControlPlane`:
`plane.add(DeploymentController(plane))`.
`CONTROLLERS` maps the names of kube-controller-manager to factories; a controller is imported when it is created.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podlife.controller import ControlPlane
    from podlife.controller.control_plane import Runnable

__all__ = ["CONTROLLERS"]


def _of(module: str, name: str) -> Callable[..., Runnable]:
    def make(plane: ControlPlane, **options: Any) -> Runnable:
        controller: Runnable = getattr(importlib.import_module(module), name)(plane, **options)
        return controller

    return make


CONTROLLERS: Mapping[str, Callable[..., Runnable]] = MappingProxyType(
    {
        "cronjob-controller": _of("podlife.workloads.cronjob", "CronJobController"),
        "daemonset-controller": _of("podlife.workloads.daemonset", "DaemonSetController"),
        "deployment-controller": _of("podlife.workloads.deployment", "DeploymentController"),
        "disruption-controller": _of("podlife.workloads.disruption", "DisruptionController"),
        "job-controller": _of("podlife.workloads.job", "JobController"),
        "replicaset-controller": _of("podlife.workloads.replicaset", "ReplicaSetController"),
        "replicationcontroller-controller": _of("podlife.workloads.replicaset", "ReplicationManager"),
        "statefulset-controller": _of("podlife.workloads.statefulset", "StatefulSetController"),
        "ttl-after-finished-controller": _of(
            "podlife.workloads.ttl_after_finished", "TtlAfterFinishedController"
        ),
    }
)
"""Factories by controller name; keyword arguments (`workers`) are passed to the controller."""
