"""Predicates on the state of a pod. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

from podlife.api.selectors import LabelSelector
from podlife.api.views import controller_of
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
