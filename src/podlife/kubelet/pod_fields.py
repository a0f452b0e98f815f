"""Accessors for fields of plain pod objects and their statuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Pod = Mapping[str, Any]
Container = Mapping[str, Any]
Status = Mapping[str, Any]

_SOURCE = "kubernetes.io/config.source"
_MIRROR = "kubernetes.io/config.mirror"
_MAX_HOSTNAME = 63


def containers_of(pod: Pod) -> list[Container]:
    return (pod.get("spec") or {}).get("containers") or []


def init_containers_of(pod: Pod) -> list[Container]:
    return (pod.get("spec") or {}).get("initContainers") or []


def hostname_of(pod: Pod) -> str:
    """The hostname of containers with their own UTS namespace."""
    name: str = pod["spec"].get("hostname") or pod["metadata"]["name"]
    return name[:_MAX_HOSTNAME].rstrip("-.")


def is_sidecar(container: Container) -> bool:
    """For init containers only: a regular container may have the same policy."""
    return container.get("restartPolicy") == "Always"


def is_deleting(pod: Pod) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None


def is_mirror(pod: Pod) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def is_static(pod: Pod) -> bool:
    """Whether it comes from a file or URL of the node. A mirror pod comes from the API server and is not static."""
    source = (pod["metadata"].get("annotations") or {}).get(_SOURCE)
    return source is not None and source != "api" and not is_mirror(pod)


def is_terminal_phase(phase: str | None) -> bool:
    return phase in ("Succeeded", "Failed")


def long_name(pod: Pod) -> str:
    """Upstream's form in messages: name_namespace(uid)."""
    metadata = pod["metadata"]
    return f"{metadata.get('name', '')}_{metadata.get('namespace', '')}({metadata.get('uid', '')})"


def state_of(status: Status, which: str = "state") -> tuple[str, Mapping[str, Any]]:
    """The kind ("" for an empty state) and details of a container's state, or of its `lastState`."""
    for kind in ("running", "terminated", "waiting"):
        value = (status.get(which) or {}).get(kind)
        if value is not None:
            return kind, value
    return "", {}


def exit_code(terminated: Mapping[str, Any]) -> int:
    return int(terminated.get("exitCode") or 0)


def status_by_name(*lists: Iterable[Status] | None) -> dict[str, Status]:
    return {each["name"]: each for statuses in lists for each in statuses or ()}


def bare_id(container_id: str) -> str:
    """The runtime's own ID; in a status it is prefixed with the runtime's name."""
    return container_id.rpartition("://")[2]


def condition_of(status: Status, type_: str) -> Mapping[str, Any] | None:
    return next((each for each in status.get("conditions") or () if each.get("type") == type_), None)
