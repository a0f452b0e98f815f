"""The node that the kubelet's server speaks for, and what it asks of the kubelet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import CollectorRegistry

from podlife.clock import Clock
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.runtime import Runtime


class ServedPods(Protocol):
    """The pods of the node as the kubelet knows them, each with the newest status that it has."""

    def find_pod(self, namespace: str, name: str) -> Pod | None: ...

    def pods(self) -> Iterable[Pod]: ...


@dataclass(frozen=True, slots=True)
class ServedNode:
    """`trouble` says what is wrong with the kubelet; empty when it is healthy. `registry` is what `/metrics` shows."""

    name: str
    pods: ServedPods
    runtime: Runtime
    clock: Clock
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    trouble: Callable[[], str] = str
    # How long a log or a command may stand still before its caller is given up.
    stream_idle_seconds: float = 4 * 3600.0
