"""When a pod is synced again after a step. Pure.

Every delay is jittered between its base and 1.5 times that: pods that failed together are not retried together.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podlife.errors import PodlifeError

NETWORK_NOT_READY = "network is not ready"
_JITTER = 0.5


class BackoffError(PodlifeError):
    """A part of the pod is backing off until `until` (monotonic time): an earlier sync would have no effect."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class Delays(msgspec.Struct, frozen=True):
    """The kubelet's own values (PW-100)."""

    resync_seconds: float = 60.0
    backoff_seconds: float = 10.0
    transient_seconds: float = 1.0


def delay_after(
    delays: Delays, error: BaseException | None, now: float, *, is_transition: bool, random: float
) -> float:
    """Seconds until the next sync. `random` is between 0 and 1."""
    if is_transition:
        return 0.0
    base = delays.resync_seconds if error is None else _base(delays, error, now)
    return base * (1 + _JITTER * random)


def retry_delay(delays: Delays, random: float) -> float:
    """Seconds until a pod that may not start yet is tried again (PW-63)."""
    return delays.backoff_seconds * (1 + _JITTER * random)


def _base(delays: Delays, error: BaseException, now: float) -> float:
    errors = list(_flattened(error))
    # The network usually comes up soon: this delay takes precedence over all others of the pod (PW-98).
    if any(NETWORK_NOT_READY in str(each) for each in errors):
        return delays.transient_seconds
    ends = [each.until for each in errors if isinstance(each, BackoffError)]
    seconds = min(ends) - now if ends else delays.backoff_seconds
    return min(max(seconds, 0.0), delays.resync_seconds)


def _flattened(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes, and all members of exception groups."""
    seen: set[int] = set()
    left = [error]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            left.extend(each.exceptions)
        if each.__cause__ is not None:
            left.append(each.__cause__)
