"""The controllers of Kubernetes' own workloads, built on pod control and nothing else.

Each runs on any API server: `podlife controllers run`, or in a program of one's own with a `ControlPlane`.
`CONTROLLERS` has all of them by the names that kube-controller-manager gives them; one is imported when it is made.
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
        "daemonset-controller": _of("podlife.workloads.daemonset", "DaemonSetController"),
        "deployment-controller": _of("podlife.workloads.deployment", "DeploymentController"),
        "disruption-controller": _of("podlife.workloads.disruption", "DisruptionController"),
        "job-controller": _of("podlife.workloads.job", "JobController"),
        "replicaset-controller": _of("podlife.workloads.replicaset", "ReplicaSetController"),
        "statefulset-controller": _of("podlife.workloads.statefulset", "StatefulSetController"),
        "ttl-after-finished-controller": _of(
            "podlife.workloads.ttl_after_finished", "TtlAfterFinishedController"
        ),
    }
)
"""What makes each controller for a control plane, by its name; options of its class (`workers`) may be given."""
