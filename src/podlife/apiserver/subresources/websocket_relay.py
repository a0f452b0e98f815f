"""A log over a WebSocket: its subprotocols, and what is carried over them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import aiohttp

from podlife.apiserver.registry.request_body import bad_request
from podlife.wire import Channel, Request

_BINARY, _BASE64 = "binary.k8s.io", "base64.binary.k8s.io"


def log_protocols(request: Request) -> tuple[str, ...] | None:
    """Return the subprotocols for a log, empty for none; None if no WebSocket is requested. Raises 400."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return None
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    wanted = [part.strip() for part in offered.split(",") if part.strip()]
    common = tuple(protocol for protocol in wanted if protocol in (_BINARY, _BASE64))
    if wanted and not common:
        known = f"{_BINARY} {_BASE64}"
        raise bad_request(f"unable to upgrade: none of the requested protocols is supported, only [{known}]")
    return common


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
            is_text = client.protocol == _BASE64
            # As upstream: an empty message tells the client that the stream is open.
            await client.send("" if is_text else b"")
            async for part in read_log(answer):
                await client.send(base64.b64encode(part).decode() if is_text else part)
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
