"""One call over HTTP/2 without TLS: what a gRPC health check needs of the protocol, and no more.

Written here because a probe is one small message each way: a gRPC library would be the heaviest part of the kubelet,
with threads and an event loop of its own, and a node that needs nothing installed would have no gRPC probes.
Guaranteed: at most 256 kB are read from the other side, whatever it sends. Left to the caller: the time limit, what the
messages mean.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from podlife.kubelet.probe.connection import Stream
from podlife.kubelet.probe.hpack import Decoder, HpackError, encode
from podlife.kubelet.probe.target import NoResponseError

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_MOST_FRAME_BYTES = 16 * 1024
_MOST_BYTES = 256 * 1024
_STREAM = 1
# No server may push anything at us.
_OUR_SETTINGS = struct.pack(">HI", 2, 0)


class _Type(enum.IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    CONTINUATION = 9


class CallRefusedError(NoResponseError):
    """The other side ended the call before it had answered."""


@dataclass(slots=True)
class CallResponse:
    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class _Frame:
    type: int
    flags: int
    stream: int
    payload: bytes


class Connection:
    """One connection and its only call."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._received = 0
        self._decoder = Decoder()

    async def open(self) -> None:
        """Returns when the other side has shown that it speaks HTTP/2. Raises `NoResponseError`."""
        await self._stream.send(_PREFACE + _frame(_Type.SETTINGS, 0, 0, _OUR_SETTINGS))
        first = await self._next_frame()
        if first.type != _Type.SETTINGS or first.flags & _ACK or first.stream != 0:
            raise NoResponseError("error reading server preface: the first frame is no settings")
        await self._stream.send(_frame(_Type.SETTINGS, _ACK, 0))

    async def call(self, headers: Iterable[tuple[str, str]], message: bytes) -> CallResponse:
        """Raises `NoResponseError`, and `CallRefusedError` where the other side said no."""
        await self._stream.send(
            _frame(_Type.HEADERS, _END_HEADERS, _STREAM, encode(headers))
            + _frame(_Type.DATA, _END_STREAM, _STREAM, message)
        )
        answer = CallResponse()
        while not answer.is_complete:
            await self._take(answer, await self._next_frame())
        return answer

    async def _take(self, answer: CallResponse, frame: _Frame) -> None:
        match frame.type:
            case _Type.SETTINGS if not frame.flags & _ACK:
                await self._stream.send(_frame(_Type.SETTINGS, _ACK, 0))
            case _Type.PING if not frame.flags & _ACK:
                await self._stream.send(_frame(_Type.PING, _ACK, 0, frame.payload[:8]))
            case _Type.GOAWAY:
                # One that only says "no more after this" lets our call go on.
                last = int.from_bytes(frame.payload[:4], "big") & 0x7FFFFFFF
                if last < _STREAM:
                    raise CallRefusedError("the server goes away")
            case _Type.RST_STREAM if frame.stream == _STREAM:
                raise CallRefusedError(f"stream ended by the server with code {frame.payload[:4].hex()}")
            case _Type.DATA if frame.stream == _STREAM:
                answer.data += _unpadded(frame)
                answer.is_complete = bool(frame.flags & _END_STREAM)
            case _Type.HEADERS:
                await self._take_headers(answer, frame)

    async def _take_headers(self, answer: CallResponse, frame: _Frame) -> None:
        block, end = bytearray(_unpadded(frame)), frame
        if frame.flags & _PRIORITY:
            del block[:5]
        while not end.flags & _END_HEADERS:
            end = await self._next_frame()
            if end.type != _Type.CONTINUATION or end.stream != frame.stream:
                raise NoResponseError("connection error: PROTOCOL_ERROR")
            block += end.payload
        try:
            answer.headers.update(self._decoder.decode(bytes(block)))
        except HpackError as error:
            raise NoResponseError(f"connection error: COMPRESSION_ERROR: {error}") from None
        answer.is_complete = bool(frame.flags & _END_STREAM)

    async def _next_frame(self) -> _Frame:
        head = await self._exactly(9)
        length = int.from_bytes(head[:3], "big")
        if length > _MOST_FRAME_BYTES:
            raise NoResponseError("error reading server preface: http2: frame too large")
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        return _Frame(head[3], head[4], stream, await self._exactly(length))

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self._stream.receive()
            if not data:
                raise NoResponseError("error reading from server: EOF")
            self._received += len(data)
            if self._received > _MOST_BYTES:
                raise NoResponseError(f"the server answered with more than {_MOST_BYTES} bytes")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def _frame(type_: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([type_, flags]) + stream.to_bytes(4, "big") + payload


def _unpadded(frame: _Frame) -> bytes:
    if not frame.flags & _PADDED:
        return frame.payload
    if not frame.payload or frame.payload[0] >= len(frame.payload):
        raise NoResponseError("connection error: PROTOCOL_ERROR")
    return frame.payload[1 : len(frame.payload) - frame.payload[0]]
