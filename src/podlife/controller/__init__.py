"""What controllers share: the reconcile loop, the control plane, leader election, health and metrics.

Names are imported on first use: a controller without metrics does not load the metrics library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podlife.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from podlife.controller.control_plane import ControlPlane, Runnable
    from podlife.controller.health import Health, HealthServer, Index
    from podlife.controller.leader_election import LeaderElector, LeaseLostError, make_identity
    from podlife.controller.liveness_check import LivenessCheck
    from podlife.controller.metrics import (
        export_client,
        export_controllers,
        export_election,
        export_informers,
        export_queues,
    )
    from podlife.controller.own_writes import OwnWrites
    from podlife.controller.reconcile import Again, Controller, Enqueue, OnChange

__all__ = [
    "Again",
    "ControlPlane",
    "Controller",
    "Enqueue",
    "Health",
    "HealthServer",
    "Index",
    "LeaderElector",
    "LeaseLostError",
    "LivenessCheck",
    "OnChange",
    "OwnWrites",
    "Runnable",
    "export_client",
    "export_controllers",
    "export_election",
    "export_informers",
    "export_queues",
    "make_identity",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "podlife.controller.control_plane": ("ControlPlane", "Runnable"),
        "podlife.controller.health": ("Health", "HealthServer", "Index"),
        "podlife.controller.leader_election": ("LeaderElector", "LeaseLostError", "make_identity"),
        "podlife.controller.liveness_check": ("LivenessCheck",),
        "podlife.controller.metrics": (
            "export_client",
            "export_controllers",
            "export_election",
            "export_informers",
            "export_queues",
        ),
        "podlife.controller.own_writes": ("OwnWrites",),
        "podlife.controller.reconcile": ("Again", "Controller", "Enqueue", "OnChange"),
    },
)
