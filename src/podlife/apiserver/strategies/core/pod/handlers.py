"""Probes and lifecycle hooks: exactly one handler each, with numbers in range."""

from __future__ import annotations

from collections.abc import Callable

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, forbidden, not_supported, required
from podlife.api.names import check_http_header_name, check_port_name
from podlife.apiserver.strategies.field_checks import non_negative, problems_at

_SECONDS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
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
        return problems_at(path, port, check_port_name(port))
    if 1 <= port <= 65535:
        return []
    return [bad_value(path, port, "must be between 1 and 65535, inclusive")]


def _validate_exec(action: Object, path: str) -> list[FieldError]:
    return [] if action.get("command") else [required(f"{path}.command")]


def _validate_http(action: Object, path: str) -> list[FieldError]:
    errors = validate_port_reference(f"{path}.port", action.get("port", 0))
    if (scheme := action.get("scheme", "")) not in _SCHEMES:
        errors.append(not_supported(f"{path}.scheme", scheme, _SCHEMES))
    for header in action.get("httpHeaders", ()):
        name = header.get("name", "")
        errors += problems_at(f"{path}.httpHeaders", name, check_http_header_name(name))
    return errors


def _validate_socket(action: Object, path: str) -> list[FieldError]:
    return validate_port_reference(f"{path}.port", action.get("port", 0))


_ACTIONS: dict[str, Callable[[Object, str], list[FieldError]]] = {
    "exec": _validate_exec,
    "httpGet": _validate_http,
    "tcpSocket": _validate_socket,
    "grpc": _validate_socket,
}


def _validate_handler(
    handler: Object, path: str, kinds: tuple[str, ...], grace_seconds: int | None
) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for kind in kinds:
        action = handler.get(kind)
        if action is None:
            continue
        if found:
            errors.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
            continue
        found = True
        if kind == "sleep":
            errors += _validate_sleep(action, f"{path}.sleep", grace_seconds)
        else:
            errors += _ACTIONS[kind](action, f"{path}.{kind}")
    if not found:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _validate_sleep(action: Object, path: str, grace_seconds: int | None) -> list[FieldError]:
    seconds = action.get("seconds", 0)
    if grace_seconds is None or 0 <= seconds <= grace_seconds:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
    return [bad_value(path, seconds, detail)]


def validate_probe(probe: Object, path: str, *, is_readiness: bool) -> list[FieldError]:
    errors = _validate_handler(probe, path, _PROBE_HANDLERS, None)
    for field in _SECONDS:
        if probe.get(field, 0) < 0:
            errors += non_negative(f"{path}.{field}", probe[field])
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if is_readiness:
        if grace is not None:
            detail = "must not be set for readinessProbes"
            errors.append(bad_value(f"{path}.terminationGracePeriodSeconds", grace, detail))
    elif (threshold := probe.get("successThreshold", 0)) != 1:
        errors.append(bad_value(f"{path}.successThreshold", threshold, "must be 1"))
    return errors


def validate_lifecycle(
    lifecycle: Object, path: str, grace_seconds: int | None, operating_system: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        if (handler := lifecycle.get(hook)) is not None:
            errors += _validate_handler(handler, f"{path}.{hook}", _HOOK_HANDLERS, grace_seconds)
    if (signal := lifecycle.get("stopSignal")) is not None:
        errors += _validate_stop_signal(signal, f"{path}.stopSignal", operating_system)
    return errors


def _validate_stop_signal(signal: str, path: str, operating_system: str) -> list[FieldError]:
    if not operating_system:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _WINDOWS_SIGNALS if operating_system == "windows" else _LINUX_SIGNALS
    return [] if signal in known else [not_supported(path, signal, known)]
