"""What every controller needs around its own decisions: the reconcile loop, leader election, health and metrics.

A name is imported from its module when it is first used: a controller that asks for no metrics loads none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podlife.controller.control_plane import ControlPlane, Followed, Runnable
    from podlife.controller.enqueue import Enqueue
    from podlife.controller.health import Health, HealthServer
    from podlife.controller.leader_election import LeaderElector, LeaseLostError, make_identity
    from podlife.controller.liveness_check import Pulse
    from podlife.controller.metrics import (
        export_client,
        export_controllers,
        export_election,
        export_informers,
        export_queues,
    )
    from podlife.controller.own_writes import OwnWrites
    from podlife.controller.reconcile import Again, Controller, ControllerMetrics

__all__ = [
    "Again",
    "ControlPlane",
    "Controller",
    "ControllerMetrics",
    "Enqueue",
    "Followed",
    "Health",
    "HealthServer",
    "LeaderElector",
    "LeaseLostError",
    "OwnWrites",
    "Pulse",
    "Runnable",
    "export_client",
    "export_controllers",
    "export_election",
    "export_informers",
    "export_queues",
    "make_identity",
]

# Where to look, the cheapest first.
_MODULES = (
    "reconcile",
    "enqueue",
    "own_writes",
    "control_plane",
    "health",
    "liveness_check",
    "leader_election",
    "metrics",
)


def __getattr__(name: str) -> object:
    for module_name in _MODULES if name in __all__ else ():
        module = importlib.import_module(f"podlife.controller.{module_name}")
        if name in module.__all__:
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
