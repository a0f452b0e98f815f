"""What the endpoint shows: the node it speaks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from podlife.clock import Clock
from podlife.kubelet.runtime import Runtime

from .pod_lookup import ServedPods

__all__ = ["ServedNode"]


def _healthy() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ServedNode:
    """`trouble` says what is wrong with the agent, nothing when it is well. `registry` is what `/metrics` shows."""

    name: str
    pods: ServedPods
    runtime: Runtime
    clock: Clock
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    trouble: Callable[[], str] = _healthy
    # How long a log or a command may stand still before its caller is given up.
    stream_idle_seconds: float = 4 * 3600.0
