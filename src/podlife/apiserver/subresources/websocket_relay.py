"""WebSocket relays between a client and a kubelet: subprotocols, and what is carried over them.

An exec is multiplexed: every message begins with its channel number. Before `v4` the end of a command was reported on
the error channel in plain text, and only if it had failed; for such clients (`channel.k8s.io`, or no subprotocol) the
kubelet's `v4` messages are translated. A log is carried as binary messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import aiohttp

from podlife.api.codec import decode_object
from podlife.apiserver.registry.request_body import bad_request
from podlife.errors import ApiError
from podlife.wire import Channel, Request

_V4 = "v4.channel.k8s.io"
_CHANNELS = ("v5.channel.k8s.io", _V4)
_PLAIN_CHANNELS = "channel.k8s.io"
_BINARY = "binary.k8s.io"
_ERROR = b"\x03"

KubeletSocket = aiohttp.ClientWebSocketResponse[bool]


class ExecProtocols(NamedTuple):
    """Subprotocols of an exec. `with_client` is None if it equals the kubelet's, and empty for no subprotocol."""

    with_kubelet: tuple[str, ...]
    with_client: tuple[str, ...] | None = None


def exec_protocols(request: Request) -> ExecProtocols:
    """Return the subprotocols all sides know, newest first. Raises ApiError with 400 if there are none."""
    wanted = _wanted(request)
    if common := tuple(protocol for protocol in _CHANNELS if protocol in wanted):
        return ExecProtocols(common)
    if not wanted or _PLAIN_CHANNELS in wanted:
        return ExecProtocols((_V4,), (_PLAIN_CHANNELS,) if wanted else ())
    raise _none_supported((*_CHANNELS, _PLAIN_CHANNELS))


def log_protocols(request: Request) -> tuple[str, ...] | None:
    """Return the subprotocol for a log, empty for none; None if no WebSocket is requested. Raises 400."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return None
    wanted = _wanted(request)
    if wanted and _BINARY not in wanted:
        raise _none_supported((_BINARY,))
    return (_BINARY,) if wanted else ()


def _wanted(request: Request) -> set[str]:
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    return {part.strip() for part in offered.split(",")} - {""}


def _none_supported(known: tuple[str, ...]) -> ApiError:
    text = f"unable to upgrade: none of the requested protocols is supported, only [{' '.join(known)}]"
    return bad_request(text)


async def relay_exec(kubelet: KubeletSocket, client: Channel, *, has_plain_errors: bool = False) -> None:
    """Carry messages between the client's channel and the kubelet's, at the pace of the slower reader."""
    try:
        async with asyncio.TaskGroup() as group:
            to_kubelet = group.create_task(_to_kubelet(client, kubelet), name="exec: client to kubelet")
            await _to_client(kubelet, client, has_plain_errors=has_plain_errors)
            # The command has ended: anything the client still sends is dropped.
            to_kubelet.cancel()
    except* (ConnectionError, aiohttp.ClientError):
        # One side disconnected; both are closed below, and there is nothing to report.
        pass
    finally:
        await kubelet.close()
        await client.close()


async def _to_kubelet(client: Channel, kubelet: KubeletSocket) -> None:
    while (message := await client.receive()) is not None:
        await kubelet.send_bytes(message)
    await kubelet.close()


async def _to_client(kubelet: KubeletSocket, client: Channel, *, has_plain_errors: bool) -> None:
    while True:
        message = await kubelet.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            data = bytes(message.data)
        elif message.type is aiohttp.WSMsgType.TEXT:
            data = message.data.encode()
        else:
            return
        if has_plain_errors and data[:1] == _ERROR:
            data = _plain_error(data)
        if data:
            await client.send(data)


def _plain_error(message: bytes) -> bytes:
    """Convert the `v4` error channel's Status to the older plain text; empty for a success."""
    try:
        status = decode_object(message[1:])
    except ValueError:
        return message
    return b"" if status.get("status") == "Success" else _ERROR + str(status.get("message", "")).encode()


async def relay_log(answer: aiohttp.ClientResponse, client: Channel) -> None:
    """Carry a log to the client, at its pace, until the log ends or the client disconnects."""

    async def close_when_gone() -> None:
        while await client.receive() is not None:
            pass
        # Ends the reading task, too.
        answer.close()

    try:
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(close_when_gone(), name="log: client")
            # As upstream: an empty message tells the client that the stream is open.
            await client.send(b"")
            async for part in read_log(answer):
                await client.send(part)
            listening.cancel()
    except* ConnectionError:
        pass
    finally:
        answer.close()
        await client.close()


async def read_log(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for part in answer.content.iter_any():
            yield part
    except aiohttp.ClientError:
        # The kubelet disconnected: as upstream, the stream ends where it is.
        return
    finally:
        answer.close()
