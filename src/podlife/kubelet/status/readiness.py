"""Whether a container has started and is ready (PR-15): the two flags of its status, from its probe results. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import Object, parse_time
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    bare_id,
    containers_of,
    exit_code,
    init_containers_of,
    is_sidecar,
    state_of,
    status_by_name,
)
from podlife.kubelet.prober.state import ProbeLookup, ProbeResult, ProbeType

_RESTART_GRACE = timedelta(seconds=10)


def with_flags(pod: Pod, status: Mapping[str, Any], results: ProbeLookup, agent_started: datetime) -> Object:
    """The status with `started` and `ready` of each container. `results` are asked with IDs of the
    runtime."""
    flags = _Flags(pod, results, agent_started - _RESTART_GRACE)
    result = dict(status)
    for key, containers, is_init in (
        ("containerStatuses", containers_of(pod), False),
        ("initContainerStatuses", init_containers_of(pod), True),
    ):
        specs = {each["name"]: each for each in containers}
        if status.get(key):
            result[key] = [
                flags.of(specs[each["name"]], each, is_init=is_init) if each["name"] in specs else dict(each)
                for each in status[key]
            ]
    return result


class _Flags:
    def __init__(self, pod: Pod, results: ProbeLookup, old: datetime) -> None:
        self._results = results
        self._old = old
        shown = pod.get("status") or {}
        self._shown = status_by_name(shown.get("initContainerStatuses"), shown.get("containerStatuses"))

    def of(self, container: Container, status: Mapping[str, Any], *, is_init: bool) -> Object:
        is_started = self._is_started(container, status)
        if is_init and not is_sidecar(container):
            kind, state = state_of(status)
            is_ready = kind == "terminated" and exit_code(state) == 0
        else:
            is_ready = is_started and self._is_ready(container, status)
        return {**status, "started": is_started, "ready": is_ready}

    def _is_started(self, container: Container, status: Mapping[str, Any]) -> bool:
        if state_of(status)[0] != "running":
            return False
        result = self._results(ProbeType.STARTUP, bare_id(status.get("containerID") or ""))
        if result is not None:
            return result is ProbeResult.SUCCESS
        return bool(status.get("started")) or not container.get(ProbeType.STARTUP.value)

    def _is_ready(self, container: Container, status: Mapping[str, Any]) -> bool:
        """Of one that has started, and so runs."""
        container_id = status.get("containerID") or ""
        result = self._results(ProbeType.READINESS, bare_id(container_id))
        if result is ProbeResult.SUCCESS or not container.get(ProbeType.READINESS.value):
            return True
        # The kubelet was started again and has not asked yet: what it said before goes on.
        shown = self._shown.get(container["name"], {})
        began = state_of(status)[1].get("startedAt")
        is_of_before = began is not None and parse_time(began) < self._old
        return (
            result is None
            and is_of_before
            and bool(shown.get("ready"))
            and (shown.get("containerID") == container_id)
        )
