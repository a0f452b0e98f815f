"""`podlife.dev/keep-until`: a pod that its owner wants to keep, whatever reason there is to collect it. Heeded with a
policy and without one; a time that cannot be read never comes."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from podlife.api.codec import format_time, parse_time

__all__ = ["KEEP_UNTIL", "kept_by", "seconds_of", "told"]

KEEP_UNTIL = "podlife.dev/keep-until"
"""On a pod: an RFC 3339 time before which nothing collects it; a value that cannot be read means for ever."""


def kept_by(until: float, now: float) -> str:
    """What keeps a pod with this moment at that time, in words, or "". A moment of 0 is none."""
    if not until or until <= now:
        return ""
    length = "for ever: its value is no time" if until == math.inf else f"until {told(until)}"
    return f"annotation {KEEP_UNTIL}, {length}"


def told(moment: float) -> str:
    """For people; a moment that never comes too."""
    try:
        return format_time(datetime.fromtimestamp(moment, UTC))
    except (ValueError, OverflowError, OSError):
        return "the end of time"


def seconds_of(text: str) -> float:
    """Since 1970; a time that cannot be read never comes."""
    try:
        return parse_time(text).timestamp()
    except ValueError:
        return math.inf
