"""Probes and lifecycle hooks: exactly one handler each, with numbers in range."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required
from podlife.api.names import check_http_header_name, check_port_name
from podlife.apiserver.strategies.field_checks import check_at, non_negative, one_of, port_number

_SECONDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_WINDOWS_SIGNALS = frozenset({"SIGKILL", "SIGTERM"})
_NAMED_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP "
    "SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
)
_LINUX_SIGNALS = frozenset(
    [f"SIG{name}" for name in _NAMED_SIGNALS.split()]
    + [f"SIGRTMIN+{step}" for step in range(1, 16)]
    + [f"SIGRTMAX-{step}" for step in range(1, 15)]
)


def validate_port_reference(path: str, port: int | str) -> list[FieldError]:
    """A port by number or by its name in a container."""
    if isinstance(port, str):
        return check_at(path, port, check_port_name)
    return port_number(path, port)


def _validate_handler(
    handler: Object, path: str, kinds: tuple[str, ...], grace_seconds: int | None
) -> FieldErrors:
    given = [kind for kind in kinds if handler.get(kind) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    yield from _validate_action(given[0], handler[given[0]], f"{path}.{given[0]}", grace_seconds)
    for kind in given[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _validate_action(kind: str, action: Object, path: str, grace_seconds: int | None) -> FieldErrors:
    if kind == "exec":
        if not action.get("command"):
            yield required(f"{path}.command")
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
            yield bad_value(path, seconds, detail)
    else:
        yield from validate_port_reference(f"{path}.port", action.get("port", 0))
    if kind == "httpGet":
        yield from one_of(f"{path}.scheme", action.get("scheme", ""), _SCHEMES)
        for header in action.get("httpHeaders", ()):
            yield from check_at(f"{path}.httpHeaders", header.get("name", ""), check_http_header_name)


def validate_probe(probe: Object, container_path: str, kind: str) -> FieldErrors:
    path = f"{container_path}.{kind}"
    yield from _validate_handler(probe, path, _PROBE_HANDLERS, None)
    for field in _SECONDS:
        if probe.get(field, 0) < 0:
            yield from non_negative(f"{path}.{field}", probe[field])
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe":
        if grace is not None:
            detail = "must not be set for readinessProbes"
            yield bad_value(f"{path}.terminationGracePeriodSeconds", grace, detail)
    elif (threshold := probe.get("successThreshold", 0)) != 1:
        yield bad_value(f"{path}.successThreshold", threshold, "must be 1")


def validate_lifecycle(
    lifecycle: Object, path: str, grace_seconds: int | None, operating_system: str
) -> FieldErrors:
    for hook in ("postStart", "preStop"):
        if (handler := lifecycle.get(hook)) is not None:
            yield from _validate_handler(handler, f"{path}.{hook}", _HOOK_HANDLERS, grace_seconds)
    if (signal := lifecycle.get("stopSignal")) is not None:
        yield from _validate_stop_signal(signal, f"{path}.stopSignal", operating_system)


def _validate_stop_signal(signal: str, path: str, operating_system: str) -> list[FieldError]:
    if not operating_system:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _WINDOWS_SIGNALS if operating_system == "windows" else _LINUX_SIGNALS
    return one_of(path, signal, known)
