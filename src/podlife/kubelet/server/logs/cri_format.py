"""A streaming parser of the CRI log format: `2030-01-01T00:00:00.000000000Z stdout F text`.

Input may be split anywhere; long lines are passed through without buffering. Lines tagged `P` are parts of one line and
are joined. Lines in another format are skipped, as upstream.
"""

from __future__ import annotations

import re
from calendar import timegm
from dataclasses import dataclass
from datetime import datetime

# Time, stream and tags are much shorter; a line without a complete header by then is not a log line.
_HEADER_BYTES = 512
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:\d\d)"
_match_time = re.compile(_TIME, re.ASCII).fullmatch
_match_header = re.compile(_TIME.encode() + rb" (stdout|stderr) ([^ \n]*) ").match


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The requested part of a log. `stream` is `All`, `Stdout` or `Stderr`; `since_nanoseconds` counts from 1970."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_nanoseconds: int | None = None
    stream: str = "All"


class LogText:
    """Converts the bytes of a log file into the requested text. `is_full` once the byte limit is reached."""

    def __init__(self, options: LogOptions) -> None:
        self._since = options.since_nanoseconds
        self._has_timestamps = options.timestamps
        self._left = options.limit_bytes
        self._stream = {"Stdout": b"stdout", "Stderr": b"stderr"}.get(options.stream)
        # The beginning of an incomplete header.
        self._rest = b""
        # The state of the current line.
        self._is_inside = self._is_wanted = self._is_partial = False
        # Whether the next output begins a line: after a partial line it does not, whichever its stream.
        self._is_new_line = True

    @property
    def is_full(self) -> bool:
        return self._left is not None and self._left <= 0

    def feed(self, data: bytes) -> bytes:
        """The text to output for these bytes."""
        data, self._rest = self._rest + data, b""
        shown: list[bytes] = []
        position, size = 0, len(data)
        while position < size:
            if not self._is_inside:
                text_at = self._begin(data, position, shown)
                if text_at < 0:
                    self._rest = data[position:]
                    break
                position = text_at
            end = data.find(b"\n", position)
            self._is_inside = end < 0
            if self._is_wanted:
                shown.append(data[position : size if end < 0 else end + (not self._is_partial)])
            position = size if end < 0 else end + 1
        return self._within_limit(b"".join(shown))

    def _begin(self, data: bytes, position: int, shown: list[bytes]) -> int:
        """Parse the header at `position`; returns where its text begins, or -1 if the header is incomplete."""
        header = _match_header(data, position)
        if header is None:
            if len(data) - position < _HEADER_BYTES and data.find(b"\n", position) < 0:
                return -1
            # Not a log line: skip it.
            self._is_wanted = False
            return position
        time, fraction, zone, stream, tags = header.groups()
        self._is_partial = tags[:1] == b"P" and tags[1:2] in (b"", b":")
        self._is_wanted = self._stream in (None, stream) and self._is_recent(time, fraction, zone)
        if self._is_wanted:
            if self._has_timestamps and self._is_new_line:
                # Always nine digits, so that lines are aligned.
                shown.append(b"%s.%s%s " % (time, (fraction or b"").ljust(9, b"0"), zone))
            self._is_new_line = not self._is_partial
        return header.end()

    def _is_recent(self, time: bytes, fraction: bytes | None, zone: bytes) -> bool:
        if self._since is None:
            return True
        nanoseconds = _nanoseconds(time.decode(), (fraction or b"").decode(), zone.decode())
        return nanoseconds is not None and nanoseconds >= self._since

    def _within_limit(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: max(self._left, 0)]
        self._left -= len(text)
        return text


def nanoseconds_of(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; None if it is invalid."""
    match = _match_time(text)
    return None if match is None else _nanoseconds(match[1], match[2] or "", match[3])


def _nanoseconds(time: str, fraction: str, zone: str) -> int | None:
    try:
        seconds = timegm(datetime.fromisoformat(time).timetuple())
    except ValueError:
        return None
    if zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds += -offset if zone[0] == "+" else offset
    return seconds * 1_000_000_000 + int(fraction.ljust(9, "0"))
