"""When a probe runs, and what its results mean (PR-01 to PR-10): a state machine without I/O.

`decide` reads a pod's status and says what to do now; after `RUN` the outcome goes into `take`. Both return the
prober's next state and its new result, if that changes. The caller runs the probe, waits for the period and stores
results by container ID.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import parse_time
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    bare_id,
    exit_code,
    init_containers_of,
    is_deleting,
    is_sidecar,
    is_terminal_phase,
    state_of,
    status_by_name,
)
from podlife.kubelet.restart_policy import is_restartable, should_restart_all

# A container that started this long before the kubelet belongs to an earlier kubelet.
_RESTART_GRACE = timedelta(seconds=10)


class ProbeType(enum.Enum):
    STARTUP = "startupProbe"
    READINESS = "readinessProbe"
    LIVENESS = "livenessProbe"


class ProbeResult(enum.Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


# The current result for a container, by runtime ID; None before the first result.
ProbeLookup = Callable[[ProbeType, str], ProbeResult | None]


class Next(enum.Enum):
    # Nothing to do until the next period.
    WAIT = "wait"
    RUN = "run"
    STOP = "stop"


# The result before the first probe (PR-02).
_INITIAL = {
    ProbeType.LIVENESS: ProbeResult.SUCCESS,
    ProbeType.READINESS: ProbeResult.FAILURE,
    ProbeType.STARTUP: ProbeResult.UNKNOWN,
}


# Minimum and default of each number in a probe.
_NUMBERS = {
    "timeoutSeconds": (1, 1),
    "periodSeconds": (1, 10),
    "successThreshold": (1, 1),
    "failureThreshold": (1, 3),
    "initialDelaySeconds": (0, 0),
}


@dataclass(frozen=True, slots=True)
class ProberState:
    """What a prober remembers between two ticks."""

    container_id: str = ""
    is_on_hold: bool = False
    last: ProbeResult | None = None
    run: int = 0


@dataclass(frozen=True, slots=True)
class ProbeDecision:
    """`forget` is the ID of a container whose result is no longer valid."""

    next: Next
    state: ProberState
    # The new result; None if it does not change.
    result: ProbeResult | None = None
    forget: str = ""


def probe_spec(container: Container, type_: ProbeType) -> dict[str, int]:
    """The numbers of a probe, with defaults (PR-01), and not below the minimum that validation allows: a prober without
    a positive period would never pause."""
    spec: Mapping[str, Any] = container.get(type_.value) or {}
    return {name: max(minimum, spec.get(name) or default) for name, (minimum, default) in _NUMBERS.items()}


class Prober:
    """One type of probe of one container. A container that started before `kubelet_started` belongs to an earlier
    one."""

    def __init__(self, pod: Pod, container: Container, type_: ProbeType, kubelet_started: datetime) -> None:
        self._container = container
        self._type = type_
        self._spec = probe_spec(container, type_)
        self._old = kubelet_started - _RESTART_GRACE
        self._is_sidecar = is_sidecar(container) and any(
            each["name"] == container["name"] for each in init_containers_of(pod)
        )

    def decide(
        self, state: ProberState, pod: Pod, status: Mapping[str, Any] | None, now: datetime
    ) -> ProbeDecision:
        """What to do now. `pod` may be newer than the prober and may be terminating by now."""
        if status is None:
            return ProbeDecision(Next.WAIT, state)
        if is_terminal_phase(status.get("phase")):
            return ProbeDecision(Next.STOP, state, forget=state.container_id)
        container_status = self._container_status(status)
        if container_status is None:
            return ProbeDecision(Next.WAIT, state)
        result, forget = None, ""
        container_id = bare_id(container_status["containerID"])
        if container_id != state.container_id:
            forget = state.container_id
            result = self._first_result(container_status)
            state = replace(state, container_id=container_id, is_on_hold=False)
        if state.is_on_hold:
            return ProbeDecision(Next.WAIT, state, result, forget)
        kind, container_state = state_of(container_status)
        if kind != "running":
            may_restart = (
                kind != "terminated"
                or is_restartable(pod, self._container, exit_code(container_state))
                or should_restart_all(pod, status)
            )
            return ProbeDecision(Next.WAIT if may_restart else Next.STOP, state, ProbeResult.FAILURE, forget)
        if is_deleting(pod) and self._type is not ProbeType.READINESS:
            # A container that stops on request must not be reported unhealthy.
            return ProbeDecision(Next.STOP, state, ProbeResult.SUCCESS, forget)
        is_due = self._is_after_delay(container_state, now) and (
            bool(container_status.get("started")) is not (self._type is ProbeType.STARTUP)
        )
        return ProbeDecision(Next.RUN if is_due else Next.WAIT, state, result, forget)

    def take(self, state: ProberState, result: ProbeResult | None) -> ProbeDecision:
        """Apply the result of a probe; None for a probe that could not be run, which changes nothing (PR-11)."""
        if result is None:
            return ProbeDecision(Next.WAIT, state)
        run = state.run + 1 if state.last is result else 1
        state = replace(state, last=result, run=run)
        thresholds = {
            ProbeResult.FAILURE: self._spec["failureThreshold"],
            ProbeResult.SUCCESS: self._spec["successThreshold"],
        }
        if run < thresholds.get(result, 0):
            return ProbeDecision(Next.WAIT, state)
        is_failed_liveness = self._type is ProbeType.LIVENESS and result is ProbeResult.FAILURE
        if is_failed_liveness or self._type is ProbeType.STARTUP:
            state = replace(state, is_on_hold=True, run=0)
        return ProbeDecision(Next.WAIT, state, result)

    def _container_status(self, status: Mapping[str, Any]) -> Mapping[str, Any] | None:
        for key in ("containerStatuses", "initContainerStatuses"):
            found = status_by_name(status.get(key)).get(self._container["name"])
            if found is not None and found.get("containerID"):
                return found
        return None

    def _first_result(self, container_status: Mapping[str, Any]) -> ProbeResult | None:
        """The result for a new container ID. A container older than the kubelet keeps what its status says (PR-17)."""
        kind, running = state_of(container_status)
        began = running.get("startedAt") if kind == "running" else None
        if began is None or parse_time(began) >= self._old:
            return _INITIAL[self._type]
        is_known_started = (
            self._is_sidecar and self._type is ProbeType.STARTUP and container_status.get("started")
        )
        return ProbeResult.SUCCESS if is_known_started else None

    def _is_after_delay(self, running: Mapping[str, Any], now: datetime) -> bool:
        began = running.get("startedAt")
        delay = self._spec["initialDelaySeconds"]
        return began is None or int((now - parse_time(began)).total_seconds()) >= delay
