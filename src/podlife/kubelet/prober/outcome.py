"""What the outcome of a probe means, its event (PR-11 to PR-14), and which probers a pod has (PR-16). Pure.

An outcome is what one probe found, a result is what counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podlife.kubelet.envvars import expand
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    init_containers_of,
    is_sidecar,
)
from podlife.kubelet.prober.state import ProbeResult, ProbeType

# A probe that could not be carried out is tried so often in all (PR-12).
MAX_TRIES = 3

_TITLES = {ProbeType.LIVENESS: "Liveness", ProbeType.READINESS: "Readiness", ProbeType.STARTUP: "Startup"}


class ProbeOutcome(enum.Enum):
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """An event about the container; all are warnings."""

    reason: str
    message: str


def result_of(outcome: ProbeOutcome) -> ProbeResult:
    """Of a probe that was carried out; the result of one that was not is thrown away."""
    return (
        ProbeResult.SUCCESS
        if outcome in (ProbeOutcome.SUCCESS, ProbeOutcome.WARNING)
        else ProbeResult.FAILURE
    )


def probe_event(type_: ProbeType, outcome: ProbeOutcome, output: str, error: str = "") -> ProbeEvent | None:
    title = _TITLES[type_]
    if error:
        return ProbeEvent(
            "Unhealthy", f"{title} probe errored and resulted in {outcome.value} state: {error}"
        )
    match outcome:
        case ProbeOutcome.SUCCESS:
            return None
        case ProbeOutcome.WARNING:
            return ProbeEvent("ProbeWarning", f"{title} probe warning: {output}")
        case _:
            return ProbeEvent("Unhealthy", f"{title} probe failed: {output}")


def http_outcome(code: int) -> tuple[ProbeOutcome, str]:
    """A redirect that is not followed is a warning; what a failed answer says is not shown (PR-13)."""
    if 200 <= code < 300:
        return ProbeOutcome.SUCCESS, ""
    if 300 <= code < 400:
        return ProbeOutcome.WARNING, "Probe terminated redirects"
    return ProbeOutcome.FAILURE, f"HTTP probe failed with statuscode: {code}"


def exec_outcome(exit_code: int | None) -> ProbeOutcome:
    """None is a command that took too long."""
    return ProbeOutcome.SUCCESS if exit_code == 0 else ProbeOutcome.FAILURE


def exec_command(container: Container, command: Sequence[str]) -> list[str]:
    """Only plain values of the container's environment are known here; other references stay as written (PR-14)."""
    known = {
        each["name"]: each.get("value") or ""
        for each in container.get("env") or ()
        if "valueFrom" not in each
    }
    return [expand(each, known) for each in command]


def probers_of(pod: Pod) -> Iterator[tuple[Container, ProbeType]]:
    """One per container and type. Plain init containers have none."""
    for container in (*containers_of(pod), *filter(is_sidecar, init_containers_of(pod))):
        for type_ in ProbeType:
            if container.get(type_.value):
                yield container, type_


def probers_that_stop(pod: Pod) -> Iterator[tuple[str, ProbeType]]:
    """When the pod is to end: a container that ends as asked must not be found ill for it. Upstream lets those of
    sidecars run on, to no effect but misleading events (PR-19); here they stop as well."""
    for container, type_ in probers_of(pod):
        if type_ is not ProbeType.READINESS:
            yield container["name"], type_


def first_delay_seconds(period_seconds: float, agent_age_seconds: float, random: float) -> float:
    """A kubelet that was just started has all its probes to begin at once: each waits a part of its period (PR-18).
    `random` is between 0 and 1."""
    return random * period_seconds if period_seconds > agent_age_seconds else 0.0
