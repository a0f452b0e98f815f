"""Events about pods and their containers, as a kubelet words them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podlife.kubelet.lifecycle.objects import Container, Pod

__all__ = ["EventSink", "Telling"]

_NORMAL, _WARNING = "Normal", "Warning"
_PLACES = ("containers", "initContainers", "ephemeralContainers")


class EventSink(Protocol):
    """A `Recorder`: neither waits nor raises."""

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None: ...


class Telling:
    def __init__(self, sink: EventSink) -> None:
        self._sink = sink

    def pod(self, pod: Pod, reason: str, message: str, *, is_warning: bool = False) -> None:
        self._sink.event(_reference(pod), _WARNING if is_warning else _NORMAL, reason, message)

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
        """The container's ID is replaced by its name: texts with IDs in them would all be different events."""
        if container_id:
            message = message.replace(container_id, container["name"])
        regarding = _reference(pod)
        if path := _field_path(pod, container):
            regarding["fieldPath"] = path
        self._sink.event(regarding, _WARNING if is_warning else _NORMAL, reason, message)


def _reference(pod: Pod) -> dict[str, str]:
    metadata = pod["metadata"]
    told = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    return {**told, "namespace": metadata.get("namespace") or ""}


def _field_path(pod: Pod, container: Container) -> str:
    name = container["name"]
    for place in _PLACES:
        if any(each["name"] == name for each in pod["spec"].get(place) or ()):
            return f"spec.{place}{{{name}}}"
    return ""
