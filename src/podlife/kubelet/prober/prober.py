"""Runs a probe against its container, once, and what its outcome means (PR-11 to PR-14).

An outcome is what one probe found, a result is what counts.

Whatever the container does, a reply comes within the probe's timeout, and at most ten kilobytes of output are kept.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podlife.api.durations import format_go_duration
from podlife.kubelet.envvars import expand
from podlife.kubelet.pod_fields import Container, Pod, long_name
from podlife.kubelet.probe import (
    NoResponseError,
    ProbeError,
    container_port,
    grpc_health,
    http_get,
    http_request,
    tcp_connect,
)
from podlife.kubelet.probe.target import target_host
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.runtime import ContainerRuntimeError, ExecTimeoutError, Runtime

# A probe that could not be carried out is tried so often in all (PR-12).
MAX_TRIES = 3

_TITLES = {ProbeType.LIVENESS: "Liveness", ProbeType.READINESS: "Readiness", ProbeType.STARTUP: "Startup"}
_MOST_OUTPUT_BYTES = 10 * 1024
# A runtime ends a command that takes too long, and needs a moment for it; one that does not answer is given up.
_RUNTIME_SECONDS = 10.0
# If an answer is late by so much, the kubelet itself was held up.
_HELD_UP_SECONDS = 0.5


class ProbeOutcome(enum.Enum):
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    spec: Mapping[str, Any]
    pod: Pod
    container: Container
    container_id: str
    pod_ip: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """With an `error` the probe could not be carried out."""

    outcome: ProbeOutcome
    output: str = ""
    error: str = ""


async def run_probe(runtime: Runtime, question: ProbeRequest) -> ProbeReply:
    """Tried again, up to three times in all, while it cannot be carried out."""
    loop = asyncio.get_running_loop()
    error = ""
    for _ in range(MAX_TRIES):
        began = loop.time()
        try:
            return await _ask_once(runtime, question)
        except NoResponseError as failure:
            late = loop.time() - began - question.seconds
            if late < _HELD_UP_SECONDS:
                return ProbeReply(ProbeOutcome.FAILURE, str(failure))
            # No container is restarted because the node was busy.
            error = f"the node was held up for {late:.1f} s while it waited for the answer: {failure}"
        except (ProbeError, ContainerRuntimeError) as failure:
            error = str(failure) or type(failure).__name__
    return ProbeReply(ProbeOutcome.UNKNOWN, error=error)


async def _ask_once(runtime: Runtime, question: ProbeRequest) -> ProbeReply:
    spec, seconds = question.spec, question.seconds
    if (action := spec.get("exec")) is not None:
        return await _run(runtime, question, action)
    if (action := spec.get("httpGet")) is not None:
        return await _get(question, action)
    if (action := spec.get("tcpSocket")) is not None:
        host = target_host(action.get("host"), question.pod_ip)
        await tcp_connect(host, container_port(action.get("port", 0), question.container), seconds=seconds)
        return ProbeReply(ProbeOutcome.SUCCESS)
    if (action := spec.get("grpc")) is not None:
        port = container_port(action.get("port", 0), question.container)
        service = action.get("service") or ""
        await grpc_health(target_host(None, question.pod_ip), port, service, seconds=seconds)
        return ProbeReply(ProbeOutcome.SUCCESS, "service healthy")
    raise ProbeError(f"missing probe handler for {long_name(question.pod)}:{question.container['name']}")


async def _run(runtime: Runtime, question: ProbeRequest, action: Mapping[str, Any]) -> ProbeReply:
    command = exec_command(question.container, action.get("command") or ())
    try:
        async with asyncio.timeout(question.seconds + _RUNTIME_SECONDS):
            result = await runtime.exec_sync(question.container_id, command, timeout_seconds=question.seconds)
    except ExecTimeoutError:
        limit = format_go_duration(question.seconds)
        text = f'command timed out: "{" ".join(command)}" timed out after {limit}'
        return ProbeReply(exec_outcome(None), text[:_MOST_OUTPUT_BYTES])
    except TimeoutError:
        raise ProbeError("the runtime did not answer in time") from None
    output = (result.stdout + result.stderr)[:_MOST_OUTPUT_BYTES]
    return ProbeReply(exec_outcome(result.exit_code), output.decode("utf-8", "replace"))


async def _get(question: ProbeRequest, action: Mapping[str, Any]) -> ProbeReply:
    request = http_request(action, question.container, question.pod_ip, purpose="probe")
    answer = await http_get(request, seconds=question.seconds)
    outcome, output = http_outcome(answer.code)
    if outcome is ProbeOutcome.WARNING:
        output = f"{output}, Response body: {answer.body.decode('utf-8', 'replace')}"
    return ProbeReply(outcome, output)


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """An event about the container; all are warnings."""

    reason: str
    message: str


def result_of(outcome: ProbeOutcome) -> ProbeResult:
    """Of a probe that was carried out; the result of one that was not is thrown away."""
    is_success = outcome in (ProbeOutcome.SUCCESS, ProbeOutcome.WARNING)
    return ProbeResult.SUCCESS if is_success else ProbeResult.FAILURE


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
    plain = [each for each in container.get("env") or () if "valueFrom" not in each]
    known = {each["name"]: each.get("value") or "" for each in plain}
    return [expand(each, known) for each in command]
