"""Backoff for the deletion of failed daemon pods: a daemon that fails immediately would otherwise be recreated in a
loop. The delay doubles from one second to 15 minutes and starts over after 30 minutes without a failure.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

_FIRST_SECONDS = 1.0
_MOST_SECONDS = 15 * 60.0
_PEACE_SECONDS = 2 * _MOST_SECONDS


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float
    since: float


class FailedPodsBackoff:
    """Keyed by node and DaemonSet; times are the caller's, in seconds."""

    def __init__(self) -> None:
        # Ordered by time, so that expired entries come first.
        self._waits: dict[Hashable, _Wait] = {}

    def seconds_left(self, key: Hashable, now: float) -> float:
        """How long a failed pod has to be left there; 0 when it may be deleted."""
        wait = self._waits.get(key)
        return 0.0 if wait is None else max(0.0, wait.since + wait.seconds - now)

    def note(self, key: Hashable, now: float) -> None:
        """One is being deleted."""
        self._forget_before(now - _PEACE_SECONDS)
        last = self._waits.pop(key, None)
        seconds = _FIRST_SECONDS if last is None else min(2 * last.seconds, _MOST_SECONDS)
        self._waits[key] = _Wait(seconds, now)

    def _forget_before(self, moment: float) -> None:
        while self._waits:
            oldest = next(iter(self._waits))
            if self._waits[oldest].since >= moment:
                return
            del self._waits[oldest]

    def __len__(self) -> int:
        return len(self._waits)
