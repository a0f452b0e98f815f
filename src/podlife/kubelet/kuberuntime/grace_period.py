"""How long a container has to end, and the events about it (KC-03 to KC-12, KC-17). Pure.

One budget is used up in this order: preStop hook, then waiting for other containers of the pod; the rest goes to the
runtime, but never less than two seconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from podlife.kubelet.constants import MAXIMUM_STOP_SECONDS, MINIMUM_STOP_SECONDS
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of

# Reasons of events, with what they say.
KILLING = "Killing"
FAILED_PRE_STOP_HOOK = ("FailedPreStopHook", "PreStopHook failed")
FAILED_POST_START_HOOK = ("FailedPostStartHook", "PostStartHook failed")


class KillReason(enum.Enum):
    OTHER = "other"
    STARTUP_PROBE = "startupProbe"
    LIVENESS_PROBE = "livenessProbe"


@dataclass(frozen=True, slots=True)
class StopBudget:
    """Whole seconds that are left."""

    seconds: int

    @property
    def has_time_for_hook(self) -> bool:
        """Without any grace neither a preStop hook nor a turn is waited for (KC-08, KC-11)."""
        return self.seconds > 0

    def without(self, waited_seconds: float) -> StopBudget:
        """What is left after some waiting, of which only whole seconds count (KC-09)."""
        return StopBudget(self.seconds - int(waited_seconds))

    @property
    def runtime_seconds(self) -> int:
        """What the runtime is to give the container (KC-12)."""
        return max(self.seconds, MINIMUM_STOP_SECONDS)


def stop_budget(
    pod: Pod,
    container: Container,
    *,
    reason: KillReason = KillReason.OTHER,
    override_seconds: int | None = None,
) -> StopBudget:
    """Of a container that is about to be stopped. An override counts alone, even if it is more (KC-06). The API allows
    graces that a runtime's client cannot put into a deadline."""
    seconds = _base_seconds(pod, container, reason) if override_seconds is None else override_seconds
    return StopBudget(min(seconds, MAXIMUM_STOP_SECONDS))


def _base_seconds(pod: Pod, container: Container, reason: KillReason) -> int:
    deletion = pod["metadata"].get("deletionGracePeriodSeconds")
    if deletion is not None:
        return int(deletion)
    spec = pod["spec"].get("terminationGracePeriodSeconds")
    if spec is None:
        return MINIMUM_STOP_SECONDS
    own = (container.get(reason.value) or {}).get("terminationGracePeriodSeconds")
    return int(spec if own is None else own)


def killing_message(name: str, message: str = "") -> str:
    """Of the event that is sent before the preStop hook (KC-07)."""
    return message or f"Stopping container {name}"


def container_to_stop(pod: Pod, name: str, container_id: str) -> Container:
    """What the pod says of one of its containers; raises LookupError where it says nothing (KC-01)."""
    for container in (*containers_of(pod), *init_containers_of(pod), *_ephemeral(pod)):
        if container["name"] == name:
            return container
    pod_name = pod["metadata"].get("name", "")
    raise LookupError(
        f"failed to get containerSpec {name!r} (id={container_id!r}) in pod {pod_name!r} when killing container"
    )


def _ephemeral(pod: Pod) -> list[Container]:
    return pod["spec"].get("ephemeralContainers") or []
