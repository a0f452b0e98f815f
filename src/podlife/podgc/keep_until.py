"""The annotation `podlife.dev/keep-until`: a pod that is not collected for any reason before this time.

It applies with and without a policy. A value that cannot be parsed protects the pod forever."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from podlife.api.codec import format_time, parse_time

KEEP_UNTIL = "podlife.dev/keep-until"
"""On a pod: an RFC 3339 time before which it is not collected. An invalid value means forever."""


def kept_by(until: float, now: float) -> str:
    """Describes the protection that lasts until this time, or "" if it has expired. 0 means none."""
    if not until or until <= now:
        return ""
    length = "forever: invalid time" if until == math.inf else f"until {format_timestamp(until)}"
    return f"annotation {KEEP_UNTIL}, {length}"


def format_timestamp(seconds: float) -> str:
    """Formats seconds since 1970, including infinity."""
    try:
        return format_time(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return "the end of time"


def seconds_of(text: str) -> float:
    """Seconds since 1970; infinity for an invalid time."""
    try:
        return parse_time(text).timestamp()
    except ValueError:
        return math.inf
