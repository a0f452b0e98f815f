"""The gRPC health check (grpc.health.v1.Health/Check), with upstream's messages."""

from __future__ import annotations

import asyncio
import http
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from podlife.api.durations import format_go_duration
from podlife.kubelet.probe.connection import connected
from podlife.kubelet.probe.target import NoResponseError, host_port

if TYPE_CHECKING:
    from podlife.kubelet.probe.http2 import CallResponse

_USER_AGENT = "kube-probe/1.36"
_SERVING = 1
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_CODE_NAMES = (
    "OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied ResourceExhausted "
    "FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss Unauthenticated"
)
_CODES = _CODE_NAMES.split()
# gRPC codes for servers that respond with plain HTTP.
_HTTP_CODES = {
    400: "Internal",
    401: "Unauthenticated",
    403: "PermissionDenied",
    404: "Unimplemented",
    429: "Unavailable",
    502: "Unavailable",
    503: "Unavailable",
    504: "Unavailable",
}


async def grpc_health(host: str, port: int, service: str, *, seconds: float) -> None:
    """Return if the service is serving. Raises `NoResponseError` with the reason if not."""
    # Imported here: most nodes never run a gRPC probe, and importing h2 takes a while.
    from podlife.kubelet.probe.http2 import CallRefusedError, Connection

    address = host_port(host, port)
    is_open = False
    try:
        async with asyncio.timeout(seconds), connected(host, port) as stream:
            connection = Connection(stream)
            await connection.open()
            is_open = True
            response = await connection.call(_headers(address, seconds), _request(service))
    except TimeoutError:
        limit = format_go_duration(seconds)
        if is_open:
            raise NoResponseError(f"timeout: health rpc did not complete within {limit}") from None
        text = f'timeout: failed to connect service "{address}" within {limit}: context deadline exceeded'
        raise NoResponseError(text) from None
    except NoResponseError as error:
        if is_open:
            code = "Canceled" if isinstance(error, CallRefusedError) else "Unavailable"
            raise _failed(code, str(error)) from None
        raise NoResponseError(f'error: failed to connect service at "{address}": {error}') from None
    _check(response)


def _headers(address: str, seconds: float) -> list[tuple[str, str]]:
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.health.v1.Health/Check"),
        (":authority", address),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", _USER_AGENT),
        ("grpc-timeout", f"{int(seconds * 1000)}m"),
    ]


def _request(service: str) -> bytes:
    name = service.encode("utf-8", "replace")
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return b"\0" + len(message).to_bytes(4, "big") + message


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


def _check(response: CallResponse) -> None:
    code, message = _status(response)
    if code == "Unimplemented":
        what = "this server does not implement the grpc health protocol (grpc.health.v1.Health)"
        raise NoResponseError(f"error: {what}: {message}")
    if code == "DeadlineExceeded":
        raise NoResponseError("timeout: health rpc did not complete in time")
    if code != "OK":
        raise _failed(code, message)
    status = _health(bytes(response.data))
    if status != _SERVING:
        shown = _STATUSES[status] if status < len(_STATUSES) else str(status)
        raise NoResponseError(f'service unhealthy (responded with "{shown}")')


def _status(response: CallResponse) -> tuple[str, str]:
    code = response.headers.get("grpc-status")
    if code is not None:
        is_known = code.isascii() and code.isdigit() and len(code) < 3 and int(code) < len(_CODES)
        name = _CODES[int(code)] if is_known else f"Code({code[:10]})"
        return name, unquote(response.headers.get("grpc-message", ""))[:1000]
    http_status = response.headers.get(":status", "")
    number = (
        int(http_status) if http_status.isascii() and http_status.isdigit() and len(http_status) == 3 else 0
    )
    if number == 200:
        return "Internal", "server closed the stream without sending trailers"
    known = {each.value: each.phrase for each in http.HTTPStatus}
    text = f"unexpected HTTP status code received from server: {http_status[:10]} ({known.get(number, 'unknown')})"
    return _HTTP_CODES.get(number, "Unknown"), text


def _failed(code: str, message: str) -> NoResponseError:
    return NoResponseError(f"error: health rpc probe failed: rpc error: code = {code} desc = {message}")


def _health(data: bytes) -> int:
    """The status in a response of one message."""
    length = int.from_bytes(data[1:5], "big")
    if len(data) < 5 or data[0] != 0 or len(data) != 5 + length:
        raise _failed("Internal", "the answer is not one plain message")
    try:
        return dict(_numbers(data[5:])).get(1, 0)
    except (IndexError, ValueError):
        raise _failed("Internal", "failed to unmarshal the received message") from None


def _numbers(message: bytes) -> Iterator[tuple[int, int]]:
    """The integer fields of a protobuf message; others are skipped."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        match key & 7:
            case 0:
                value, at = _read_varint(message, at)
                yield key >> 3, value
            case 1:
                at += 8
            case 2:
                length, at = _read_varint(message, at)
                at += length
            case 5:
                at += 4
            case _:
                raise ValueError("a field of no known type")
    if at != len(message):
        raise ValueError("a message that ends too early")


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise ValueError("a number that is too large")
