"""Events about pods and their containers, as upstream's kubelet sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podlife.kubelet.object_reference import container_reference, pod_reference
from podlife.kubelet.pod_fields import Container, Pod

_NORMAL, _WARNING = "Normal", "Warning"


class EventRecorder(Protocol):
    """A `Recorder`: neither waits nor raises."""

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None: ...


class PodEvents:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def pod(self, pod: Pod, reason: str, message: str, *, is_warning: bool = False) -> None:
        self._recorder.event(pod_reference(pod), _WARNING if is_warning else _NORMAL, reason, message)

    def container(
        self,
        pod: Pod,
        container: Container,
        reason: str,
        message: str,
        *,
        is_warning: bool = False,
        container_id: str = "",
    ) -> None:
        """Replaces the container's ID with its name: messages with IDs could not be aggregated."""
        if container_id:
            message = message.replace(container_id, container["name"])
        kind = _WARNING if is_warning else _NORMAL
        self._recorder.event(container_reference(pod, container), kind, reason, message)
