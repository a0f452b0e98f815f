"""The phase of a pod, from the states of its containers (PH-01, PH-02, PHR-01 to PHR-94)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    exit_code,
    init_containers_of,
    is_sidecar,
    is_static,
    state_of,
    status_by_name,
)
from podlife.kubelet.restart_policy import RESTARTING_ALL, is_restartable

Statuses = Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class _Count:
    # Plain init containers.
    init_pending: int = 0
    init_failed: int = 0
    # Sidecars that have not started.
    sidecars_pending: int = 0
    # Sidecars and regular containers.
    unknown: int = 0
    running: int = 0
    waiting: int = 0
    # Regular containers alone.
    stopped: int = 0
    stopped_for_good: int = 0
    succeeded: int = 0


def phase_of(
    pod: Pod, statuses: list[Any], *, is_terminal: bool = False, is_initialized: bool = False
) -> str:
    """`statuses` are those of all containers. `is_terminal`: no container will be started again, regardless of the
    restart policy. `is_initialized`: a regular container has run in the newest sandbox."""
    count = _count(pod, status_by_name(statuses))
    if count.init_failed:
        return "Failed"
    if count.init_pending or (count.sidecars_pending and not is_initialized) or count.waiting:
        return "Pending"
    if count.unknown:
        return "Pending"
    if count.running:
        return "Running"
    if not count.stopped:
        return "Pending"
    may_restart = not is_terminal or is_static(pod)
    if may_restart and count.stopped != count.stopped_for_good:
        return "Running"
    return "Succeeded" if count.stopped == count.succeeded else "Failed"


def _count(pod: Pod, statuses: Statuses) -> _Count:
    count = _Count()
    for container in init_containers_of(pod):
        status = statuses.get(container["name"])
        if is_sidecar(container):
            _count_sidecar(status, count)
        else:
            _count_init(pod, container, status or {}, count)
    for container in containers_of(pod):
        _count_regular(pod, container, statuses.get(container["name"]) or {}, count)
    return count


def _last_end(status: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """The kind of the state, and how the container last terminated if it is not running (PH-02)."""
    kind, state = state_of(status)
    if kind == "terminated":
        return kind, state
    last_kind, last = state_of(status, "lastState")
    return kind, last if kind == "waiting" and last_kind == "terminated" else None


def _will_restart(pod: Pod, container: Container, end: Mapping[str, Any]) -> bool:
    return is_restartable(pod, container, exit_code(end)) or end.get("reason") == RESTARTING_ALL


def _count_init(pod: Pod, container: Container, status: Mapping[str, Any], count: _Count) -> None:
    _, end = _last_end(status)
    if end is None:
        count.init_pending += 1
    elif exit_code(end) != 0 and not _will_restart(pod, container, end):
        count.init_failed += 1


def _count_sidecar(status: Mapping[str, Any] | None, count: _Count) -> None:
    if status is None:
        count.unknown += 1
        return
    kind, end = _last_end(status)
    if end is not None:
        # A stopped sidecar does not affect the phase.
        return
    if not (kind == "running" and status.get("started")):
        count.sidecars_pending += 1
    count.running += kind == "running"
    count.waiting += kind == "waiting"
    count.unknown += kind == ""


def _count_regular(pod: Pod, container: Container, status: Mapping[str, Any], count: _Count) -> None:
    kind, end = _last_end(status)
    count.running += kind == "running"
    count.unknown += kind == ""
    count.waiting += kind == "waiting" and end is None
    if end is not None:
        count.stopped += 1
        count.stopped_for_good += not _will_restart(pod, container, end)
        count.succeeded += kind == "terminated" and exit_code(end) == 0
