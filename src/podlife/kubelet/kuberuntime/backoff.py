"""Backoff of restarting containers (RB-01 to RB-09). Pure: times are parameters.

The first restart is immediate and sets the delay, each further one doubles it; ten minutes without a failure reset it.
Kept in memory only: a restarted kubelet begins again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from podlife.api.durations import format_go_duration
from podlife.kubelet.constants import (
    CRASH_LOOP_INITIAL_SECONDS,
    CRASH_LOOP_MAX_SECONDS,
    CRASH_LOOP_RESET_SECONDS,
)
from podlife.kubelet.pod_fields import Container, Pod, long_name

# The reason of the event, and of the container's waiting state.
BACK_OFF = "BackOff"
CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"

_LOG = re.compile(r"(\d+)\.log(\.|$)")


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float
    decided_at: datetime


class Backoff:
    """Delays by key. A delay is forgotten after `expiry_seconds` without a failure."""

    def __init__(
        self, *, initial_seconds: float, max_seconds: float, expiry_seconds: float | None = None
    ) -> None:
        self._initial = initial_seconds
        self._max = max_seconds
        self._expiry = timedelta(seconds=2 * max_seconds if expiry_seconds is None else expiry_seconds)
        self._waits: dict[str, _Wait] = {}

    def seconds(self, key: str) -> float:
        wait = self._waits.get(key)
        return 0.0 if wait is None else wait.seconds

    def is_waiting(self, key: str, since: datetime, now: datetime) -> bool:
        """Whether the delay after the failure at `since` has not passed yet (RB-02)."""
        wait = self._waits.get(key)
        if wait is None or self._has_expired(wait, since):
            return False
        return (now - since).total_seconds() < wait.seconds

    def record_retry(self, key: str, since: datetime, now: datetime) -> None:
        """Record a retry after the failure at `since`: the next delay is longer."""
        wait = self._waits.get(key)
        is_new = wait is None or self._has_expired(wait, since)
        seconds = self._initial if wait is None or is_new else min(wait.seconds * 2, self._max)
        self._waits[key] = _Wait(seconds, now)

    def collect(self, now: datetime) -> None:
        """Forget expired delays (RB-08)."""
        self._waits = {key: wait for key, wait in self._waits.items() if not self._has_expired(wait, now)}

    def __len__(self) -> int:
        return len(self._waits)

    def _has_expired(self, wait: _Wait, at: datetime) -> bool:
        return at - wait.decided_at > self._expiry


def crash_loop_backoff(
    max_seconds: float = CRASH_LOOP_MAX_SECONDS, *, initial_seconds: float = CRASH_LOOP_INITIAL_SECONDS
) -> Backoff:
    """The backoff of container restarts. A maximum below the initial delay lowers that, too (RB-06)."""
    return Backoff(
        initial_seconds=min(initial_seconds, max_seconds),
        max_seconds=max_seconds,
        expiry_seconds=CRASH_LOOP_RESET_SECONDS,
    )


def backoff_key(pod: Pod, container: Container) -> str:
    """A changed image or changed resources reset the backoff (RB-05)."""
    metadata = pod["metadata"]
    parts = [metadata.get("name"), metadata.get("namespace"), metadata.get("uid"), container["name"]]
    resources = json.dumps(container.get("resources") or {}, sort_keys=True)
    return "_".join(str(each) for each in (*parts, container.get("image") or "", resources))


@dataclass(frozen=True, slots=True)
class CrashLoop:
    """A container that has to wait: message for its status, message for the event, and end of the delay (RB-04)."""

    message: str
    event: str
    until: datetime


def crash_loop(
    backoff: Backoff, pod: Pod, container: Container, finished_at: datetime | None, now: datetime
) -> CrashLoop | None:
    """Why the container has to wait, given when its last instance finished; None permits and records a restart."""
    if finished_at is None:
        return None
    key, name = backoff_key(pod, container), container["name"]
    if not backoff.is_waiting(key, finished_at, now):
        backoff.record_retry(key, finished_at, now)
        return None
    seconds = backoff.seconds(key)
    return CrashLoop(
        f"back-off {format_go_duration(seconds)} restarting failed container={name} pod={long_name(pod)}",
        f"Back-off restarting failed container {name} in pod {long_name(pod)}",
        finished_at + timedelta(seconds=seconds),
    )


def restart_count(last_attempt: int | None, log_names: Iterable[str] = ()) -> int:
    """One more than the last instance's; without one, derived from the names of its log files (RB-09)."""
    if last_attempt is not None:
        return last_attempt + 1
    found = [int(match[1]) for name in log_names if (match := _LOG.match(name))]
    return max(found, default=-1) + 1
