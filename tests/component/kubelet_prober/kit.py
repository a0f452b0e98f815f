"""A node with probes: statuses and commands in the test's hand, time that jumps."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from podlife.kubelet.prober.manager import ProberManager
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.runtime import ExecResult
from podlife.testing import LoopClock
from tests.conformance.kubelet.kit import Object, container, pod

LIVENESS, READINESS, STARTUP = ProbeType.LIVENESS, ProbeType.READINESS, ProbeType.STARTUP
OK, BAD, UNKNOWN = ProbeResult.SUCCESS, ProbeResult.FAILURE, ProbeResult.UNKNOWN

PROBE: Object = {"exec": {"command": ["check"]}, "periodSeconds": 10}


def probe(**fields: Any) -> Object:
    return {**PROBE, **fields}


def running(name: str = "a", container_id: str = "1", *, started: bool = True, since: float = 0) -> Object:
    began = f"2030-01-01T00:{int(since) // 60:02}:{int(since) % 60:02}Z"
    return {
        "name": name,
        "containerID": f"sim://{container_id}",
        "started": started,
        "state": {"running": {"startedAt": began}},
    }


def status(*containers: Object, **fields: Any) -> Object:
    return {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": list(containers), **fields}


class Node:
    """Runs commands as `answer` says: a code, or something to wait for, or to raise."""

    def __init__(self, *, agent_age_seconds: float = 3600, random: float = 0.5) -> None:
        self.answer: Callable[[], int | Awaitable[int]] = lambda: 0
        self.output = b""
        # When which container was asked.
        self.asked: list[tuple[float, str]] = []
        self.timeouts: list[float | None] = []
        self.shown: dict[str, Object] = {}
        self.events: list[tuple[str, str, str]] = []
        self.changes: list[tuple[str, str, ProbeType, ProbeResult]] = []
        self.on_change: Callable[[str, str, ProbeType, ProbeResult], None] = lambda *change: (
            self.changes.append(change)
        )
        # Of one and the same question.
        self.most_at_once = 0
        self._questions: Counter[tuple[str, tuple[str, ...]]] = Counter()
        clock = LoopClock()
        started = clock.now() - timedelta(seconds=agent_age_seconds)
        self.probes = ProberManager(
            self,  # type: ignore[arg-type] # only `exec_sync` is called
            self,
            clock,
            self,
            self._changed,
            started,
            random=lambda: random,
        )

    def probe_running(self, **probes: Object) -> None:
        """Add a pod with these probes, whose one container runs."""
        self.shown["u"] = status(running())
        self.probes.add(pod(container(**probes)))

    def _changed(self, uid: str, container_id: str, type_: ProbeType, result: ProbeResult) -> None:
        self.on_change(uid, container_id, type_, result)

    @property
    def under_way(self) -> int:
        return self._questions.total()

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.asked]

    def status(self, uid: str) -> Object | None:
        return self.shown.get(uid)

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        assert type_ == "Warning"
        self.events.append((regarding["fieldPath"], reason, message))

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        self.asked.append((asyncio.get_running_loop().time(), container_id))
        self.timeouts.append(timeout_seconds)
        question = (container_id, tuple(command))
        self.most_at_once = max(self.most_at_once, self._questions[question] + 1)
        self._questions[question] += 1
        try:
            answer = self.answer()
            code = answer if isinstance(answer, int) else await answer
        finally:
            self._questions[question] -= 1
        return ExecResult(code, self.output, b"")


@asynccontextmanager
async def node(**fields: Any) -> AsyncIterator[Node]:
    made = Node(**fields)
    try:
        yield made
    finally:
        await made.probes.close()
        assert made.under_way == 0, "a question goes on after the end"


async def at(seconds: float) -> None:
    """Go to this moment, and a little further."""
    await asyncio.sleep(seconds + 0.001 - asyncio.get_running_loop().time())
