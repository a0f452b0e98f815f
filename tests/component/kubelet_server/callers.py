"""Callers of a command: over the channels of a WebSocket, and over SPDY/3.1 as rude as a test needs.

What a caller hears is kept by stream: stdin, stdout, stderr, error, resize.
"""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp

from podlife.kubelet.spdy import DICTIONARY, FrameReader, FrameWriter, GoAway, Ping, StreamData, StreamReset
from tests.component.kubelet_server.kit import World

KINDS = ("stdin", "stdout", "stderr", "error", "resize")
SPDY_IDS = {"error": 1, "stdin": 3, "stdout": 5, "stderr": 7, "resize": 9}
_BY_ID = {stream_id: kind for kind, stream_id in SPDY_IDS.items()}
_SECONDS = 60


class Caller(ABC):
    def __init__(self) -> None:
        self.heard: dict[str, bytes] = {}

    @abstractmethod
    async def say(self, kind: str, data: bytes) -> None: ...

    @abstractmethod
    async def close(self, kind: str) -> None: ...

    @abstractmethod
    async def hear(self) -> bool:
        """Whether there was anything more."""

    async def until(self, kind: str, text: bytes) -> None:
        while text not in self.heard.get(kind, b""):
            assert await self.hear(), self.heard

    async def status(self) -> dict[str, Any]:
        """How the command ended, once everything was heard."""
        while await self.hear():
            pass
        return dict(json.loads(self.heard["error"]))

    def _keep(self, kind: str, data: bytes) -> None:
        self.heard[kind] = self.heard.get(kind, b"") + data


class WebSocketCaller(Caller):
    def __init__(self, socket: aiohttp.ClientWebSocketResponse[bool]) -> None:
        super().__init__()
        self.socket = socket

    async def say(self, kind: str, data: bytes) -> None:
        await self.socket.send_bytes(bytes((KINDS.index(kind),)) + data)

    async def close(self, kind: str) -> None:
        await self.socket.send_bytes(bytes((255, KINDS.index(kind))))

    async def hear(self) -> bool:
        async with asyncio.timeout(_SECONDS):
            message = await self.socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            assert self.socket.close_code == 1000
            return False
        self._keep(KINDS[message.data[0]], message.data[1:])
        return True


class SpdyCaller(Caller):
    """`ended` are the streams that have."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self.reader, self.writer = reader, writer
        self.frames, self.frame = FrameReader(), FrameWriter()
        self._pack = zlib.compressobj(zdict=DICTIONARY)
        self.ended: set[str] = set()
        self.pings: list[int] = []
        self.refused: list[int] = []
        self.is_over = False

    def open(self, stream_id: int, kind: str) -> None:
        headers: Mapping[str, str] = {"streamtype": kind}
        block = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                block += struct.pack(">I", len(text)) + text.encode()
        packed = self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", stream_id, 0, 0) + packed
        self.writer.write(struct.pack(">II", 0x80030001, len(body)) + body)

    async def say(self, kind: str, data: bytes) -> None:
        self.writer.write(self.frame.data(SPDY_IDS[kind], data))

    async def close(self, kind: str) -> None:
        self.writer.write(self.frame.data(SPDY_IDS[kind], b"", is_last=True))

    async def hear(self) -> bool:
        if self.is_over:
            return False
        async with asyncio.timeout(_SECONDS):
            data = await self.reader.read(65536)
        for frame in self.frames.feed(data):
            match frame:
                case StreamData():
                    self._keep(_BY_ID[frame.stream_id], frame.data)
                    if frame.is_last:
                        self.ended.add(_BY_ID[frame.stream_id])
                case Ping():
                    self.pings.append(frame.number)
                case StreamReset():
                    self.refused.append(frame.stream_id)
                case GoAway():
                    self.is_over = True
        return bool(data)


def _path(command: tuple[str, ...], options: str, attach_to: str = "") -> str:
    if attach_to:
        return f"/attach/default/{attach_to}/main?{options}"
    return f"/exec/default/web/main?{options}&{urlencode([('command', part) for part in command])}"


@asynccontextmanager
async def over_websocket(
    world: World, *command: str, options: str = "output=1&error=1", version: int = 5, attach_to: str = ""
) -> AsyncIterator[WebSocketCaller]:
    protocol = f"v{version}.channel.k8s.io"
    url = f"{world.url}{_path(command, options, attach_to)}"
    async with world.caller().ws_connect(url, protocols=[protocol]) as socket:
        assert socket.protocol == protocol
        yield WebSocketCaller(socket)


@asynccontextmanager
async def over_spdy(
    world: World, *command: str, options: str = "output=1&error=1", version: int = 4, attach_to: str = ""
) -> AsyncIterator[SpdyCaller]:
    port = world.endpoint.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=world.trusting())
    writer.write(
        f"POST {_path(command, options, attach_to)} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\n"
        f"Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n"
        f"X-Stream-Protocol-Version: v{version}.channel.k8s.io\r\nContent-Length: 0\r\n\r\n".encode()
    )
    asked = {"stdin": "input=1", "stdout": "output=1", "stderr": "error=1", "resize": "tty=1"}
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in answer
        caller = SpdyCaller(reader, writer)
        for kind in ("error", *(kind for kind, option in asked.items() if option in options)):
            caller.open(SPDY_IDS[kind], kind)
        yield caller
    finally:
        writer.close()
