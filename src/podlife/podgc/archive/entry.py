"""An archive entry: one pod, as JSON lines compressed with gzip.

The first line is a header with everything that a list shows, so that a list reads only the beginning of each entry. The
pod as the server held it follows, then its events and its logs. A truncated or damaged file fails gzip's checksum and
raises `DamagedError`; an entry is never returned in part. The header is a gzip member with its own checksum, so that a
list never shows a damaged one.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, Literal

import msgspec

from podlife.api.codec import Object
from podlife.errors import PodlifeError

FORMAT = "podlife.dev/archive-v1"
# No entry is larger; a larger file is something else, or meant to exhaust memory.
_MAX_BYTES = 64 << 20
_MAX_HEADER_BYTES = 1 << 20
_PIECE_BYTES = 4096
# zlib's value for a gzip header and checksum.
_GZIP = 31


class DamagedError(PodlifeError):
    """Not an entry, or an incomplete one."""


class Header(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str
    archived_at: datetime
    # Why the pod was collected: the reason and its explanation.
    reason: str = ""
    why: str = ""
    # The policy rule that selected it; empty without a policy.
    rule: str = ""
    phase: str = ""
    node: str = ""
    # As kind/name; empty without a controller.
    owner: str = ""
    # What could not be read, with the reason.
    problems: tuple[str, ...] = ()
    format: str = FORMAT


class Log(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """The end of a container's log. Invalid UTF-8 is replaced."""

    container: str
    kind: Literal["init", "main", "ephemeral"] = "main"
    # Of the container before its last restart.
    is_previous: bool = False
    text: str = ""
    # The log was longer.
    is_cut: bool = False
    # Why there is no text.
    problem: str = ""


class Entry(msgspec.Struct, frozen=True):
    header: Header
    pod: Object
    events: tuple[Object, ...] = ()
    logs: tuple[Log, ...] = ()


class _Line(msgspec.Struct, omit_defaults=True):
    pod: Object | None = None
    event: Object | None = None
    log: Log | None = None


_header = msgspec.json.Decoder(Header)
_line = msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode


def encode_entry(entry: Entry) -> bytes:
    lines = [_Line(pod=entry.pod)]
    lines += [_Line(event=event) for event in entry.events]
    lines += [_Line(log=log) for log in entry.logs]
    header, rest = _encode(entry.header) + b"\n", b"".join(_encode(line) + b"\n" for line in lines)
    return gzip.compress(header, mtime=0) + gzip.compress(rest, mtime=0)


def read_header(file: BinaryIO) -> Header:
    """The header only. Raises DamagedError, or OSError if the file cannot be read."""
    return _decode_header(_header_line(file))


def decode_entry(data: bytes) -> Entry:
    """The whole entry. Raises DamagedError."""
    with gzip.GzipFile(fileobj=io.BytesIO(data), mode="rb") as file:
        header = _decode_header(_checked(file.readline, _MAX_HEADER_BYTES))
        rest = _checked(file.read, _MAX_BYTES + 1)
    if len(rest) > _MAX_BYTES:
        raise DamagedError("it is larger than any entry")
    return _assemble(header, _lines(rest.splitlines()))


def _assemble(header: Header, lines: Iterable[_Line]) -> Entry:
    pod: Object | None = None
    events: list[Object] = []
    logs: list[Log] = []
    for line in lines:
        pod = pod if line.pod is None else line.pod
        events += [] if line.event is None else [line.event]
        logs += [] if line.log is None else [line.log]
    if pod is None:
        raise DamagedError("there is no pod in it")
    return Entry(header, pod, tuple(events), tuple(logs))


def _lines(raw: Iterable[bytes]) -> Iterator[_Line]:
    for line in raw:
        try:
            yield _line.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise DamagedError("a line of it cannot be read") from None


def _decode_header(line: bytes) -> Header:
    try:
        header = _header.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DamagedError("its first line is not the header of an entry") from None
    if header.format != FORMAT:
        raise DamagedError(f"unknown format {header.format!r}")
    return header


def _header_line(file: BinaryIO) -> bytes:
    """The first line, verified by its checksum if it has its own: earlier versions compressed all lines together."""
    unpacker = zlib.decompressobj(wbits=_GZIP)
    line = b""
    while not unpacker.eof and line.find(b"\n") in (-1, len(line) - 1):
        if not (piece := file.read(_PIECE_BYTES)):
            raise DamagedError("it was cut short")
        try:
            line += unpacker.decompress(piece, _MAX_HEADER_BYTES)
        except zlib.error:
            raise DamagedError("it is damaged, or not compressed by gzip") from None
        if len(line) >= _MAX_HEADER_BYTES:
            break
    return line.partition(b"\n")[0]


def _checked(read: Callable[[int], bytes], limit: int) -> bytes:
    try:
        return read(limit)
    except EOFError:
        raise DamagedError("it was cut short") from None
    except (gzip.BadGzipFile, zlib.error):
        raise DamagedError("it is damaged, or not compressed by gzip") from None
