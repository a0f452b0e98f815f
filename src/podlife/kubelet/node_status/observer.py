"""Observes the machine and the runtime, and decides whether the node is ready, with upstream's messages.

A node is under pressure when a resource is below its threshold, and for a while after. This module does not evict pods.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Protocol

from podlife.kubelet.node_status.conditions import Pressure, ready_problem
from podlife.kubelet.node_status.machine import Machine, MachineUsage
from podlife.kubelet.node_status.settings import NodeSettings, Thresholds
from podlife.kubelet.node_status.status import Observation
from podlife.kubelet.runtime import ContainerRuntimeError

_NOT_YET = "container runtime status check may not have completed yet"
_DOWN = "container runtime is down"


class VersionedRuntime(Protocol):
    """The part of `Runtime` used here."""

    name: str

    async def version(self) -> str: ...


class Observer:
    """`problems` returns further reasons why the node is not ready."""

    def __init__(
        self,
        settings: NodeSettings,
        *,
        machine: Machine,
        runtime: VersionedRuntime,
        problems: Callable[[], Iterable[str]],
    ) -> None:
        self._machine = machine
        self._runtime = runtime
        self._problems = problems
        self._settings = settings
        self._gauge = PressureGauge(settings.thresholds, hold_seconds=settings.pressure_seconds)
        self._version = "Unknown"
        # When the runtime last responded, in the loop's time.
        self._responded_at: float | None = None

    async def observe(self) -> Observation:
        """Raises `ConfigError` if no node can run on this machine."""
        facts = self._machine.facts()
        runtime_problems = await self._check_runtime()
        seconds = asyncio.get_running_loop().time()
        return Observation(
            facts,
            f"{self._runtime.name}://{self._version}",
            pressure=self._gauge.read(self._machine.usage(), seconds),
            problem=ready_problem((*runtime_problems, *self._problems())),
        )

    async def _check_runtime(self) -> list[str]:
        """A restarting runtime is not reported before `runtime_patience_seconds`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._settings.check_seconds):
                self._version = await self._runtime.version()
        except (ContainerRuntimeError, TimeoutError) as error:
            reason = str(error) or f"no answer within {self._settings.check_seconds:g}s"
        else:
            self._responded_at = loop.time()
            return []
        if self._responded_at is None:
            return [_NOT_YET, f"container runtime not ready: {reason}"]
        if loop.time() - self._responded_at < self._settings.runtime_patience_seconds:
            return []
        return [_DOWN, f"container runtime not ready: {reason}"]


class PressureGauge:
    """Pressure is reported for `hold_seconds` after it has ended."""

    def __init__(self, thresholds: Thresholds, *, hold_seconds: float) -> None:
        self._thresholds = thresholds
        self._hold_seconds = hold_seconds
        self._last_short: dict[str, float] = {}

    def read(self, usage: MachineUsage, seconds: float) -> Pressure:
        """The pressure at this time (the loop's)."""
        limits = self._thresholds
        short = {
            "memory": _is_below(usage.memory_free_bytes, limits.memory_bytes),
            "disk": _is_below(usage.storage_free_percent, limits.storage_percent)
            or _is_below(usage.inodes_free_percent, limits.inodes_percent),
            "pid": _is_below(usage.pids_free_percent, limits.pids_percent),
        }
        self._last_short.update({name: seconds for name, is_short in short.items() if is_short})
        return Pressure(
            **{name: seconds - self._last_short.get(name, -math.inf) < self._hold_seconds for name in short}
            | {name: True for name, is_short in short.items() if is_short}
        )


def _is_below(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value < limit
