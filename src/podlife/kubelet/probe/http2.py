"""One call over HTTP/2 without TLS, as far as a gRPC health check needs it.

The library h2 implements the protocol. It is fed one frame at a time, so that data after a complete response is
ignored. At most 256 kB are read from the server. The caller sets the timeout and interprets the messages; it imports
this module only for the first gRPC probe.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hpack import HPACKError

from podlife.kubelet.probe.connection import Stream
from podlife.kubelet.probe.target import NoResponseError

_SETTINGS, _GOAWAY = 4, 7
_ACK = 0x1
_HEAD_BYTES = 9
_MAX_FRAME_BYTES = 16 * 1024
_MAX_BYTES = 256 * 1024
_STREAM = 1


class CallRefusedError(NoResponseError):
    """The server ended the call without a response."""


@dataclass(slots=True)
class CallResponse:
    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    is_complete: bool = False


class Connection:
    """One connection with a single call."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._received = 0
        # Missing headers are reported with upstream's messages, not h2's.
        self._http2 = H2Connection(H2Configuration(validate_inbound_headers=False))
        # Server push is disabled.
        self._http2.local_settings = Settings(initial_values={SettingCodes.ENABLE_PUSH: 0})

    async def open(self) -> None:
        """Return once the server has confirmed HTTP/2. Raises `NoResponseError`."""
        self._http2.initiate_connection()
        await self._flush()
        first = await self._next_frame()
        stream = int.from_bytes(first[5:_HEAD_BYTES], "big")
        if first[3] != _SETTINGS or first[4] & _ACK or stream != 0:
            raise NoResponseError("error reading server preface: the first frame is not SETTINGS")
        await self._feed(first)

    async def call(self, headers: Iterable[tuple[str, str]], message: bytes) -> CallResponse:
        """Raises `NoResponseError`, or `CallRefusedError` if the server refuses the call."""
        try:
            self._http2.send_headers(_STREAM, headers)
            self._http2.send_data(_STREAM, message, end_stream=True)
        except H2Error as error:
            raise _connection_error(error) from None
        await self._flush()
        response = CallResponse()
        while not response.is_complete:
            frame = await self._next_frame()
            if frame[3] != _GOAWAY:
                for event in await self._feed(frame):
                    _apply(response, event)
            # A GOAWAY that covers our stream lets the call continue; h2 would not.
            elif int.from_bytes(frame[_HEAD_BYTES : _HEAD_BYTES + 4], "big") & 0x7FFFFFFF < _STREAM:
                raise CallRefusedError("the server goes away")
        return response

    async def _feed(self, frame: bytes) -> list[Event]:
        try:
            events = self._http2.receive_data(frame)
        except H2Error as error:
            raise _connection_error(error) from None
        await self._flush()
        return events

    async def _flush(self) -> None:
        if data := self._http2.data_to_send():
            await self._stream.send(data)

    async def _next_frame(self) -> bytes:
        await self._receive(_HEAD_BYTES)
        length = int.from_bytes(self._buffer[:3], "big")
        if length > _MAX_FRAME_BYTES:
            raise NoResponseError("error reading server preface: http2: frame too large")
        await self._receive(_HEAD_BYTES + length)
        frame = bytes(self._buffer[: _HEAD_BYTES + length])
        del self._buffer[: _HEAD_BYTES + length]
        return frame

    async def _receive(self, count: int) -> None:
        """Read until the buffer has `count` bytes."""
        while len(self._buffer) < count:
            data = await self._stream.receive()
            if not data:
                raise NoResponseError("error reading from server: EOF")
            self._received += len(data)
            if self._received > _MAX_BYTES:
                raise NoResponseError(f"the server answered with more than {_MAX_BYTES} bytes")
            self._buffer += data


def _apply(response: CallResponse, event: Event) -> None:
    match event:
        case ResponseReceived() | TrailersReceived():
            pairs = event.headers or ()
            response.headers |= {
                bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in pairs
            }
        case DataReceived():
            response.data += event.data or b""
        case StreamEnded():
            response.is_complete = True
        case StreamReset():
            raise CallRefusedError(f"stream ended by the server with code {event.error_code or 0:08x}")


def _connection_error(error: H2Error) -> NoResponseError:
    if isinstance(error.__cause__, HPACKError):
        return NoResponseError(f"connection error: COMPRESSION_ERROR: {error.__cause__}")
    return NoResponseError("connection error: PROTOCOL_ERROR")
