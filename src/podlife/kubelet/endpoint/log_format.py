"""The CRI log format, read piece by piece: `2030-01-01T00:00:00.000000000Z stdout F text`.

What is fed may end anywhere; a line of any length passes through without being collected. Lines tagged `P` are parts of
one line and are put together again. A line that is not of the format is left out, as upstream does.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

__all__ = ["LogOptions", "LogText", "nanoseconds_of"]

# Time, stream and tags together are much shorter; what has no header by then is no line of a log.
_HEADER_BYTES = 512
_STREAMS = (b"stdout", b"stderr")
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What of a log is asked for. `stream` is `All`, `Stdout` or `Stderr`; `since_nanoseconds` counts from 1970."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_nanoseconds: int | None = None
    stream: str = "All"


@dataclass(slots=True)
class _Line:
    """The line that is being read. Without `is_wanted` it is passed over up to its end."""

    is_wanted: bool
    is_partial: bool = False


class LogText:
    """Turns the bytes of a log file into what the caller asked for. `is_full` when the limit of bytes is reached."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._left = options.limit_bytes
        self._wanted = {"Stdout": b"stdout", "Stderr": b"stderr"}.get(options.stream)
        self._rest = b""
        self._line: _Line | None = None
        # Streams whose last line was only a part: what follows of them is no new line.
        self._open_lines: set[bytes] = set()

    @property
    def is_full(self) -> bool:
        return self._left is not None and self._left <= 0

    def feed(self, data: bytes) -> bytes:
        """What there is to show of these bytes."""
        return self._within_limit(b"".join(self._pieces(self._rest + data)))

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        position = 0
        self._rest = b""
        while position < len(data):
            if self._line is None:
                begun = self._begin(data, position)
                if begun is None:
                    self._rest = data[position:]
                    return
                prefix, position = begun
                yield prefix
            line = self._line
            assert line is not None
            end = data.find(b"\n", position)
            stop = len(data) if end < 0 else end + (0 if line.is_partial else 1)
            if line.is_wanted:
                yield data[position:stop]
            position = len(data) if end < 0 else end + 1
            if end >= 0:
                self._line = None

    def _begin(self, data: bytes, position: int) -> tuple[bytes, int] | None:
        """Read the header that begins here: what stands before the text, and where the text begins. None where the
        header is not whole yet."""
        parts = data[position : position + _HEADER_BYTES].split(b" ", 3)
        if len(parts) == 4 and b"\n" not in b"".join(parts[:3]):
            start = position + sum(map(len, parts[:3])) + 3
            return self._begin_line(*parts[:3]), start
        if data.find(b"\n", position, position + _HEADER_BYTES) < 0 and len(data) - position < _HEADER_BYTES:
            return None
        self._line = _Line(is_wanted=False)
        return b"", position

    def _begin_line(self, time: bytes, stream: bytes, tags: bytes) -> bytes:
        moment = nanoseconds_of(time.decode("ascii", "replace")) if stream in _STREAMS else None
        if moment is None:
            self._line = _Line(is_wanted=False)
            return b""
        since = self._options.since_nanoseconds
        is_wanted = (since is None or moment >= since) and self._wanted in (None, stream)
        is_partial = tags.split(b":", 1)[0] == b"P"
        is_new = stream not in self._open_lines
        (self._open_lines.add if is_partial else self._open_lines.discard)(stream)
        self._line = _Line(is_wanted, is_partial)
        return _full_time(time) + b" " if is_wanted and is_new and self._options.timestamps else b""

    def _within_limit(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: max(self._left, 0)]
        self._left -= len(text)
        return text


def nanoseconds_of(text: str) -> int | None:
    """The moment that an RFC 3339 time means, since 1970; None where it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    try:
        datetime(year, month, day, hour, minute, min(second, 59))  # noqa: DTZ001 - only whether there is such a time
    except ValueError:
        return None
    seconds = timegm((year, month, day, hour, minute, second, 0, 0, 0))
    if match[8]:
        offset = int(match[9]) * 3600 + int(match[10]) * 60
        seconds -= offset if match[8] == "+" else -offset
    return seconds * 1_000_000_000 + int((match[7] or "").ljust(9, "0"))


def _full_time(time: bytes) -> bytes:
    """Always with nine digits, so that the lines stand below each other."""
    match = _TIME.fullmatch(time.decode())
    assert match is not None
    end = match.end(6)
    zone = b"Z" if match[8] is None else time[match.start(8) :]
    return time[:end] + b"." + (match[7] or "").ljust(9, "0").encode() + zone
