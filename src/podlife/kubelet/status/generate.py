"""Generates a pod's status from its runtime state, start failures, log tails and active deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, parse_time
from podlife.clock import Clock, add_seconds
from podlife.kubelet.interfaces import Probes
from podlife.kubelet.kuberuntime import LogDirectory, ReasonCache
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Pod, containers_of, init_containers_of, is_terminal_phase
from podlife.kubelet.restart_policy import could_restart_all, should_restart_all
from podlife.kubelet.status.conditions import all_containers_restarting, with_condition
from podlife.kubelet.status.container_statuses import PodObservation, is_log_needed
from podlife.kubelet.status.manager import StatusManager
from podlife.kubelet.status.pod_status import NodeFacts, pod_status

DEADLINE_EXCEEDED = "DeadlineExceeded"
_DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


def is_restart_under_way(pod: Pod, status: Mapping[str, Any], observed: ObservedPod) -> bool:
    """Whether a restart of all containers has begun and some of them are still to be removed."""
    return (
        could_restart_all(pod)
        and should_restart_all(pod, status, observed.newest)
        and _has_any_container(pod, observed)
    )


def _has_any_container(pod: Pod, observed: ObservedPod) -> bool:
    return any(each["name"] in observed.newest for each in (*containers_of(pod), *init_containers_of(pod)))


class StatusGenerator:
    def __init__(  # noqa: PLR0913 - every collaborator is injected explicitly
        self,
        manager: StatusManager,
        prober: Probes,
        events: PodEvents,
        clock: Clock,
        reasons: ReasonCache,
        runtime_name: str,
        host_ips: tuple[str, ...],
        *,
        resizes: Callable[[str], Sequence[Object]] = lambda _: (),
    ) -> None:
        self.manager = manager
        self._prober = prober
        self._events = events
        self._clock = clock
        self._runtime_name = runtime_name
        self._node = NodeFacts(clock.now(), host_ips)
        self._reasons = reasons
        # Conditions of the resize of a pod, by UID.
        self._resizes = resizes

    def known(self, pod: Pod) -> Mapping[str, Any]:
        """The newest status: the last one generated, or the pod's own."""
        return self.manager.status(pod["metadata"]["uid"]) or pod.get("status") or {}

    def is_over(self, pod: Pod) -> bool:
        """Whether the pod is in a terminal phase, locally or at the API server."""
        return is_terminal_phase(self.known(pod).get("phase")) or is_terminal_phase(
            (pod.get("status") or {}).get("phase")
        )

    def generate(self, pod: Pod, observed: ObservedPod, *, is_terminal: bool = False) -> Object:
        old = self.known(pod)
        is_restarting = could_restart_all(pod) and should_restart_all(pod, old, observed.newest)
        seen = PodObservation(
            pod,
            observed,
            self._runtime_name,
            self._reasons.get(pod["metadata"]["uid"]),
            is_restarting,
            _log_tails(pod, observed),
            () if is_terminal else self._resizes(pod["metadata"]["uid"]),
        )
        status = pod_status(seen, old, self._prober.result, self._node, is_terminal=is_terminal)
        if is_restarting and not _has_any_container(pod, observed):
            # All containers have been removed: the pod now starts like any other.
            condition = all_containers_restarting(pod, status["phase"], is_restarting=False)
            status["conditions"] = with_condition(status["conditions"], condition)
        if not is_terminal and not is_terminal_phase(status["phase"]) and self._is_past_deadline(pod):
            self._events.pod(pod, DEADLINE_EXCEEDED, _DEADLINE_MESSAGE)
            status.update(phase="Failed", reason=DEADLINE_EXCEEDED, message=_DEADLINE_MESSAGE)
        return status

    def report(self, pod: Pod, status: Mapping[str, Any]) -> None:
        if self.manager.set_status(pod, status):
            self._prober.status_changed(pod["metadata"]["uid"])

    def deadline(self, pod: Pod) -> datetime | None:
        """When the active deadline expires. None without a deadline, or without a valid start time."""
        seconds, start = pod["spec"].get("activeDeadlineSeconds"), self.known(pod).get("startTime")
        if seconds is None or not start:
            return None
        try:
            return add_seconds(parse_time(start), seconds)
        except ValueError:
            return None

    def _is_past_deadline(self, pod: Pod) -> bool:
        deadline = self.deadline(pod)
        return deadline is not None and self._clock.now() >= deadline


def _log_tails(pod: Pod, observed: ObservedPod) -> dict[str, str]:
    """Log tails of containers that failed without a termination message and fall back to their logs, by ID."""
    specs = {each["name"]: each for each in (*containers_of(pod), *init_containers_of(pod))}
    return {
        each.id: LogDirectory.tail(each.log_path)
        for each in observed.containers
        if each.config.name in specs and is_log_needed(specs[each.config.name], each)
    }
