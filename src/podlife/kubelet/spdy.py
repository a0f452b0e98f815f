"""SPDY/3.1 frames without I/O, used by the kubelet's server (reading) and the containerd runtime (writing).

Only what remote commands need: opening streams, data, pings, resets, GOAWAY. Memory is bounded: a control frame is
small and buffered whole, data passes through as it arrives, and headers are decompressed up to a limit. A protocol
error raises `SpdyError`, after which nothing more can be read. There is no stream flow control, which no Kubernetes
client uses; TCP provides backpressure.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podlife.errors import PodlifeError

_CONTROL, _VERSION = 0x80000000, 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS = 1, 2, 3, 4
_PING, _GOAWAY, _HEADERS, _WINDOW_UPDATE = 6, 7, 8, 9
_FIN = 1
_REFUSED_STREAM = 3
_CONTROL_BYTES = 64 * 1024
_UNPACKED_BYTES = 64 * 1024
_MAX_HEADERS = 100
_MAX_DATA = 0xFFFFFF
_STREAM_MASK = 0x7FFFFFFF

_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age "
    "allow authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_VALUES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
# The compression dictionary that both sides know: header names, each prefixed with its length in four bytes, then
# common values.
DICTIONARY = (
    b"".join(len(name).to_bytes(4, "big") + name.replace("_", " ").encode() for name in _NAMES.split())
    + _VALUES.encode()
)


class SpdyError(PodlifeError):
    """The peer does not speak SPDY/3.1, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    stream_id: int
    headers: Mapping[str, str]
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class StreamData:
    """A part of a stream, of any length; a frame may be split. `is_last` ends the stream."""

    stream_id: int
    data: bytes
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class StreamReset:
    stream_id: int


@dataclass(frozen=True, slots=True)
class Ping:
    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The peer opens no more streams."""


Frame = StreamOpened | StreamData | StreamReset | Ping | GoAway


class FrameReader:
    def __init__(self, *, max_data_bytes: int = _MAX_DATA) -> None:
        self._max_data_bytes = max_data_bytes
        self._buffer = bytearray()
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)
        # The current data frame: stream, remaining bytes, whether it is the last.
        self._data: tuple[int, int, bool] | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that these bytes complete. Raises SpdyError."""
        self._buffer += data
        while (frames := self._next()) is not None:
            yield from frames

    def _next(self) -> list[Frame] | None:
        """The next frames, possibly none; None if more bytes are needed."""
        if self._data is not None:
            return self._next_data(*self._data)
        if len(self._buffer) < 8:
            return None
        first, second = struct.unpack_from(">II", self._buffer)
        flags, length = second >> 24, second & _MAX_DATA
        if not first & _CONTROL:
            del self._buffer[:8]
            if first == 0:
                raise SpdyError("data of no stream")
            if length > self._max_data_bytes:
                raise SpdyError(f"a data frame of {length} bytes")
            self._data = (first, length, bool(flags & _FIN))
            return []
        if first >> 16 & 0x7FFF != _VERSION:
            raise SpdyError(f"version {first >> 16 & 0x7FFF} of SPDY is not known, only 3")
        if length > _CONTROL_BYTES:
            raise SpdyError(f"a control frame of {length} bytes")
        if len(self._buffer) < 8 + length:
            return None
        body = bytes(self._buffer[8 : 8 + length])
        del self._buffer[: 8 + length]
        return self._control(first & 0xFFFF, flags, body)

    def _next_data(self, stream_id: int, left: int, is_last: bool) -> list[Frame] | None:
        piece = bytes(self._buffer[:left])
        if left and not piece:
            return None
        del self._buffer[: len(piece)]
        left -= len(piece)
        self._data = (stream_id, left, is_last) if left else None
        return [StreamData(stream_id, piece, is_last and not left)]

    def _control(self, kind: int, flags: int, body: bytes) -> list[Frame]:
        if kind == _SYN_STREAM:
            stream_id = _number(body, 0) & _STREAM_MASK
            if stream_id == 0:
                raise SpdyError("a stream without a number")
            return [StreamOpened(stream_id, self._headers(body[10:]), bool(flags & _FIN))]
        if kind in (_SYN_REPLY, _HEADERS):
            # Not expected, but all header blocks share one compression state, so they must be decompressed.
            self._headers(body[4:])
            return []
        if kind == _RST_STREAM:
            return [StreamReset(_number(body, 0) & _STREAM_MASK)]
        if kind == _PING:
            return [Ping(_number(body, 0))]
        if kind == _GOAWAY:
            return [GoAway()]
        if kind in (_SETTINGS, _WINDOW_UPDATE):
            return []
        raise SpdyError(f"a control frame of kind {kind}")

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            block = self._unpack.decompress(packed, _UNPACKED_BYTES)
        except zlib.error:
            raise SpdyError("headers that cannot be unpacked") from None
        if self._unpack.unconsumed_tail or self._unpack.eof:
            raise SpdyError("headers that are too long")
        count, offset = _number(block, 0), 4
        if count > _MAX_HEADERS:
            raise SpdyError(f"{count} headers")
        headers: dict[str, str] = {}
        for _ in range(count):
            name, offset = _text(block, offset)
            value, offset = _text(block, offset)
            headers[name.lower()] = value
        return headers


class FrameWriter:
    def __init__(self) -> None:
        self._pack = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream_id: int, headers: Mapping[str, str]) -> bytes:
        return _control(_SYN_STREAM, struct.pack(">IIBB", stream_id, 0, 0, 0) + self._headers(headers))

    def reply(self, stream_id: int) -> bytes:
        return _control(_SYN_REPLY, struct.pack(">I", stream_id) + self._headers({}))

    def data(self, stream_id: int, data: bytes, *, is_last: bool = False) -> bytes:
        assert len(data) <= _MAX_DATA
        return struct.pack(">II", stream_id, (_FIN if is_last else 0) << 24 | len(data)) + data

    def ping(self, number: int) -> bytes:
        return _control(_PING, struct.pack(">I", number))

    def refuse(self, stream_id: int) -> bytes:
        return _control(_RST_STREAM, struct.pack(">II", stream_id, _REFUSED_STREAM))

    def go_away(self, last_stream_id: int) -> bytes:
        return _control(_GOAWAY, struct.pack(">II", last_stream_id, 0))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        """All header blocks of a connection form one compressed stream, flushed after each frame."""
        block = struct.pack(">I", len(headers))
        for text in itertools.chain.from_iterable(headers.items()):
            block += struct.pack(">I", len(text.encode())) + text.encode()
        return self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack(">II", _CONTROL | _VERSION << 16 | kind, len(body)) + body


def _number(data: bytes, offset: int) -> int:
    if len(data) < offset + 4:
        raise SpdyError("a frame that is too short")
    return int.from_bytes(data[offset : offset + 4], "big")


def _text(block: bytes, offset: int) -> tuple[str, int]:
    begin = offset + 4
    end = begin + _number(block, offset)
    if end > len(block):
        raise SpdyError("a header that is too short")
    return block[begin:end].decode("utf-8", "replace"), end
