"""Runs one prober: reads the pod's status when due, probes the container if it should, and stores the result.

A tick without a probe needs no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.aio import spawn
from podlife.clock import Clock
from podlife.kubelet.object_reference import container_reference
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.prober.metrics import ProbeLabels, ProbeMetrics
from podlife.kubelet.prober.prober import ProbeRequest, probe_event, result_of, run_probe
from podlife.kubelet.prober.results import ProbeResults
from podlife.kubelet.prober.state import (
    Next,
    ProbeDecision,
    Prober,
    ProbeResult,
    ProberState,
    ProbeType,
    probe_spec,
)
from podlife.kubelet.prober.ticker import Ticker
from podlife.kubelet.runtime import Runtime

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProberContext:
    """Shared by all workers of a node."""

    runtime: Runtime
    status: Callable[[str], dict[str, Any] | None]
    results: ProbeResults
    metrics: ProbeMetrics
    clock: Clock
    recorder: EventRecorder
    kubelet_started: datetime


class ProberWorker:
    """`pod` may be replaced by a newer version; the probe and the container never change."""

    def __init__(
        self,
        context: ProberContext,
        pod: Pod,
        container: Container,
        type_: ProbeType,
        on_end: Callable[[ProberWorker], None],
    ) -> None:
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self.container = container
        self.type = type_
        self.task: asyncio.Task[None] | None = None
        self._context = context
        self._on_end = on_end
        self._prober = Prober(pod, container, type_, context.kubelet_started)
        self._state = ProberState()
        self._spec = probe_spec(container, type_)
        self._ticker = Ticker(self._spec["periodSeconds"], self._tick)
        self._is_stopped = False
        self._tick_again = False
        metadata = pod["metadata"]
        title = type_.value.removesuffix("Probe").capitalize()
        self._labels = ProbeLabels(
            title, container["name"], metadata["name"], metadata.get("namespace") or "", self.uid
        )

    @property
    def is_successful(self) -> bool:
        """Whether the current result is success."""
        result = self._context.results.get(self.type, self._state.container_id)
        return result is ProbeResult.SUCCESS

    @property
    def period_seconds(self) -> int:
        return self._spec["periodSeconds"]

    def start(self, delay_seconds: float) -> None:
        self._ticker.start(delay_seconds)

    def tick_now(self) -> None:
        """Tick now; if a probe is running, right after it, since it may have probed an earlier container."""
        if self.task is not None:
            self._tick_again = True
        elif not self._is_stopped:
            self._ticker.restart()

    def stop(self) -> None:
        """Cancels a probe in flight."""
        self._is_stopped = True
        self._ticker.stop()
        if self.task is not None:
            self.task.cancel()
        self._context.metrics.forget(self._labels)

    def _tick(self) -> None:
        if self.task is not None:
            return
        try:
            self._decide()
        except Exception:
            # A prober that ended would leave its container unprobed without a sign.
            log.exception("%s of %s failed", self.type.value, self._name)
            self._ticker.schedule_next()

    def _decide(self) -> None:
        context = self._context
        status = context.status(self.uid)
        decision = self._prober.decide(self._state, self.pod, status, context.clock.now())
        self._apply(decision)
        if self._is_stopped:
            # The listener of the result has stopped this prober.
            return
        if decision.next is Next.STOP:
            self._on_end(self)
        elif decision.next is Next.RUN:
            pod_ip = str((status or {}).get("podIP") or "")
            self.task = spawn(
                self._probe(pod_ip), name=f"{self.type.value} of {self._name}", on_failure=self._failed
            )
            self.task.add_done_callback(self._on_probed)
        else:
            self._ticker.schedule_next()

    async def _probe(self, pod_ip: str) -> None:
        began = asyncio.get_running_loop().time()
        spec = self.container[self.type.value]
        container_id = self._state.container_id
        seconds = self._spec["timeoutSeconds"]
        request = ProbeRequest(spec, self.pod, self.container, container_id, pod_ip, seconds)
        reply = await run_probe(self._context.runtime, request)
        event = probe_event(self.type, reply.outcome, reply.output, reply.error)
        if event is not None:
            regarding = container_reference(self.pod, self.container)
            message = event.message.replace(container_id, self.container["name"])
            self._context.recorder.event(regarding, "Warning", event.reason, message)
        if reply.error:
            return
        result = result_of(reply.outcome)
        elapsed = asyncio.get_running_loop().time() - began
        self._context.metrics.count(self._labels, result, elapsed)
        self._apply(self._prober.take(self._state, result))

    def _on_probed(self, task: asyncio.Task[None]) -> None:
        self.task = None
        if self._is_stopped:
            return
        if self._tick_again:
            self._tick_again = False
            self._ticker.restart()
        else:
            self._ticker.schedule_next()

    def _apply(self, decision: ProbeDecision) -> None:
        self._state = decision.state
        results = self._context.results
        if decision.forget:
            results.drop(self.type, decision.forget, self.uid)
        if decision.result is not None:
            results.set(self.type, decision.state.container_id, self.uid, decision.result)

    def _failed(self, failure: BaseException) -> None:
        log.error("probe %s of %s: %r", self.type.value, self._name, failure, exc_info=failure)

    @property
    def _name(self) -> str:
        return f"{self._labels.namespace}/{self._labels.pod} container {self._labels.container}"
