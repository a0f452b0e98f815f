"""Injected time.

Timestamps come from a `Clock`, durations from the event loop. Nothing else in podlife asks the
operating system what time it is, so a test that holds the clock holds the whole system.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT = datetime.max.replace(microsecond=0, tzinfo=UTC)
"""The last second that RFC 3339 can write: 9999-12-31T23:59:59Z."""


class Clock(Protocol):
    """The wall-clock time, always in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the one place that may ask


class ManualClock:
    """A clock that only moves when it is set."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, *, seconds: float = 0, minutes: float = 0) -> None:
        """Turn the clock forward; a negative step is refused, since time never runs back."""
        step = timedelta(seconds=seconds, minutes=minutes)
        if step < timedelta(0):
            raise ValueError(f"a clock only moves forward, not by {step}")
        self._now += step


def add_seconds(moment: datetime, seconds: float) -> datetime:
    """`moment + seconds`, saturating at the first and last moments that exist.

    Stored objects may hold any int64 as a duration and any RFC 3339 time, and whoever adds them must not fail."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LAST_MOMENT if seconds > 0 else _FIRST_MOMENT
