"""When a ready pod becomes available, and when to check again. Pure except for the clock it is given.

A status is computed at one moment and the next check is scheduled at a later one. A pod that becomes available in
between must not be missed, so the check is scheduled relative to the moment of the status (AV-04).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from podlife.clock import Clock
from podlife.podcontrol.pod_state import is_ready, ready_since
from podlife.podcontrol.views import OwnedPod


def is_available(pod: OwnedPod, min_ready_seconds: int, now: datetime) -> bool:
    """Ready, and for long enough."""
    if not is_ready(pod):
        return False
    if min_ready_seconds <= 0:
        return True
    since = ready_since(pod)
    # In differences throughout: sums may lie beyond the last of all days, and a node may say anything.
    return since is not None and now - since >= timedelta(seconds=min_ready_seconds)


def next_availability_check(pod: OwnedPod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """In which time the pod becomes available by itself; None if it is or will not."""
    since = ready_since(pod)
    if since is None or min_ready_seconds <= 0:
        return None
    wait = since - now + timedelta(seconds=min_ready_seconds)
    return wait if wait > timedelta(0) else None


def seconds_to_next_check(
    pods: Iterable[OwnedPod], min_ready_seconds: int, evaluated_at: datetime, clock: Clock
) -> float | None:
    """When the first of the pods becomes available that was not when the status was evaluated: 0 if that has come
    already, None if there is no such pod."""
    waits = (next_availability_check(pod, min_ready_seconds, evaluated_at) for pod in pods)
    soonest = min((wait for wait in waits if wait is not None), default=None)
    if soonest is None:
        return None
    return max(0.0, (evaluated_at - clock.now() + soonest).total_seconds())
