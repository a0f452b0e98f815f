"""Predicates on the state of a pod, and when a ready pod becomes available. Pure except for the clock it is given.

A status is computed at one moment and the next check is scheduled at a later one. A pod that becomes available in
between must not be missed, so the check is scheduled relative to the moment of the status (AV-04).
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
    """It has run to its end, one way or the other."""
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
    """When it became ready; None if it is not, or does not say."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.last_transition_time if condition.status == "True" else None
    return None


def claimed_pods(uid: str, selector: LabelSelector, pods: Iterable[P]) -> list[P]:
    """Those that the controller with this UID owns and still selects (AP-03)."""
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
    """Until the first pod becomes available that was not at `evaluated_at`: 0 if it has; None without one."""
    waits = (next_availability_check(pod, min_ready_seconds, evaluated_at) for pod in pods)
    soonest = min((wait for wait in waits if wait is not None), default=None)
    if soonest is None:
        return None
    return max(0.0, (evaluated_at - clock.now() + soonest).total_seconds())
