"""Predicates on the state of a pod, and when a ready pod becomes available. Pure except for the clock it is given.

A status is computed at one time and the next check is scheduled later. A pod that becomes available in between must
not be missed, so the check is scheduled relative to the time of the status (AV-04).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from podlife.api.selectors import LabelSelector
from podlife.api.views import controller_of
from podlife.clock import Clock
from podlife.podcontrol.views import OwnedPod

P = TypeVar("P", bound=OwnedPod)


def is_terminal(pod: OwnedPod) -> bool:
    """Succeeded or failed."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: OwnedPod) -> bool:
    """Neither finished nor being deleted (AP-01)."""
    return not is_terminal(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: OwnedPod) -> bool:
    """Being deleted and not finished (AP-02)."""
    return not is_terminal(pod) and pod.metadata.deletion_timestamp is not None


def is_ready(pod: OwnedPod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def ready_since(pod: OwnedPod) -> datetime | None:
    """When it became ready; None if it is not ready or the time is unknown."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.last_transition_time if condition.status == "True" else None
    return None


def claimed_pods(uid: str, selector: LabelSelector, pods: Iterable[P]) -> list[P]:
    """The pods that the controller with this UID owns and still selects (AP-03)."""
    return [
        pod
        for pod in pods
        if (ref := controller_of(pod.metadata)) is not None
        and ref.uid == uid
        and selector.matches(pod.metadata.labels)
    ]


def is_available(pod: OwnedPod, min_ready_seconds: int, now: datetime) -> bool:
    """Ready, and for long enough."""
    if not is_ready(pod):
        return False
    if min_ready_seconds <= 0:
        return True
    since = ready_since(pod)
    # Differences only: sums could overflow, and a node may report any time.
    return since is not None and now - since >= timedelta(seconds=min_ready_seconds)


def next_availability_check(pod: OwnedPod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Time until the pod becomes available; None if it already is or will not."""
    since = ready_since(pod)
    if since is None or min_ready_seconds <= 0:
        return None
    wait = since - now + timedelta(seconds=min_ready_seconds)
    return wait if wait > timedelta(0) else None


def seconds_to_next_check(
    pods: Iterable[OwnedPod], min_ready_seconds: int, evaluated_at: datetime, clock: Clock
) -> float | None:
    """Seconds until the first pod that was unavailable at `evaluated_at` is available: 0 if it is; None without one."""
    waits = (next_availability_check(pod, min_ready_seconds, evaluated_at) for pod in pods)
    soonest = min((wait for wait in waits if wait is not None), default=None)
    if soonest is None:
        return None
    return max(0.0, (evaluated_at - clock.now() + soonest).total_seconds())
