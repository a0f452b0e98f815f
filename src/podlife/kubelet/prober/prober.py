"""Runs a probe once against its container, and maps its outcome to a result and an event (PR-11 to PR-14).

The outcome is that of one attempt; the result is what counts. A reply comes within the probe's timeout, whatever the
container does, and at most ten kilobytes of output are kept.
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

# Attempts for a probe that cannot be run (PR-12).
MAX_TRIES = 3

_TITLES = {ProbeType.LIVENESS: "Liveness", ProbeType.READINESS: "Readiness", ProbeType.STARTUP: "Startup"}
_MAX_OUTPUT_BYTES = 10 * 1024
# Extra time for the runtime to kill a command that timed out; after that the runtime itself is considered hung.
_RUNTIME_SECONDS = 10.0
# A response this much later than the timeout means that the kubelet itself was delayed.
_DELAYED_SECONDS = 0.5


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
    """With an `error`, the probe could not be run."""

    outcome: ProbeOutcome
    output: str = ""
    error: str = ""


async def run_probe(runtime: Runtime, request: ProbeRequest) -> ProbeReply:
    """Run a probe; retried, up to three attempts, while it cannot be run."""
    loop = asyncio.get_running_loop()
    error = ""
    for _ in range(MAX_TRIES):
        began = loop.time()
        try:
            return await _run_once(runtime, request)
        except NoResponseError as failure:
            late = loop.time() - began - request.seconds
            if late < _DELAYED_SECONDS:
                return ProbeReply(ProbeOutcome.FAILURE, str(failure))
            # A busy node must not cause a restart.
            error = f"the node was held up for {late:.1f} s while it waited for the answer: {failure}"
        except (ProbeError, ContainerRuntimeError) as failure:
            error = str(failure) or type(failure).__name__
    return ProbeReply(ProbeOutcome.UNKNOWN, error=error)


async def _run_once(runtime: Runtime, request: ProbeRequest) -> ProbeReply:
    spec, seconds = request.spec, request.seconds
    if (action := spec.get("exec")) is not None:
        return await _run(runtime, request, action)
    if (action := spec.get("httpGet")) is not None:
        return await _get(request, action)
    if (action := spec.get("tcpSocket")) is not None:
        host = target_host(action.get("host"), request.pod_ip)
        await tcp_connect(host, container_port(action.get("port", 0), request.container), seconds=seconds)
        return ProbeReply(ProbeOutcome.SUCCESS)
    if (action := spec.get("grpc")) is not None:
        port = container_port(action.get("port", 0), request.container)
        service = action.get("service") or ""
        await grpc_health(target_host(None, request.pod_ip), port, service, seconds=seconds)
        return ProbeReply(ProbeOutcome.SUCCESS, "service healthy")
    raise ProbeError(f"missing probe handler for {long_name(request.pod)}:{request.container['name']}")


async def _run(runtime: Runtime, request: ProbeRequest, action: Mapping[str, Any]) -> ProbeReply:
    command = exec_command(request.container, action.get("command") or ())
    try:
        async with asyncio.timeout(request.seconds + _RUNTIME_SECONDS):
            result = await runtime.exec_sync(request.container_id, command, timeout_seconds=request.seconds)
    except ExecTimeoutError:
        limit = format_go_duration(request.seconds)
        text = f'command timed out: "{" ".join(command)}" timed out after {limit}'
        return ProbeReply(exec_outcome(None), text[:_MAX_OUTPUT_BYTES])
    except TimeoutError:
        raise ProbeError("the runtime did not answer in time") from None
    output = (result.stdout + result.stderr)[:_MAX_OUTPUT_BYTES]
    return ProbeReply(exec_outcome(result.exit_code), output.decode("utf-8", "replace"))


async def _get(request: ProbeRequest, action: Mapping[str, Any]) -> ProbeReply:
    http = http_request(action, request.container, request.pod_ip, purpose="probe")
    response = await http_get(http, seconds=request.seconds)
    outcome, output = http_outcome(response.code)
    if outcome is ProbeOutcome.WARNING:
        output = f"{output}, Response body: {response.body.decode('utf-8', 'replace')}"
    return ProbeReply(outcome, output)


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """A warning event about the container."""

    reason: str
    message: str


def result_of(outcome: ProbeOutcome) -> ProbeResult:
    """Only for a probe that could be run."""
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
    """A redirect that is not followed is a warning; the body of a failed response is not shown (PR-13)."""
    if 200 <= code < 300:
        return ProbeOutcome.SUCCESS, ""
    if 300 <= code < 400:
        return ProbeOutcome.WARNING, "Probe terminated redirects"
    return ProbeOutcome.FAILURE, f"HTTP probe failed with statuscode: {code}"


def exec_outcome(exit_code: int | None) -> ProbeOutcome:
    """None is a command that timed out."""
    return ProbeOutcome.SUCCESS if exit_code == 0 else ProbeOutcome.FAILURE


def exec_command(container: Container, command: Sequence[str]) -> list[str]:
    """Expands only literal values of the container's environment; other references stay unchanged (PR-14)."""
    plain = [each for each in container.get("env") or () if "valueFrom" not in each]
    known = {each["name"]: each.get("value") or "" for each in plain}
    return [expand(each, known) for each in command]
