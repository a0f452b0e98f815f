"""Resources of a container in the terms of the runtime, and what a running container lacks of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from podlife.api.codec import Object
from podlife.api.quantity import Quantity, parse_nanos
from podlife.kubelet.pod_fields import Container
from podlife.kubelet.runtime import ContainerStatus, Resources

# What runtimes enforce: side, name, field of `Resources`, nanos of one unit, notation.
_FIELDS = (
    ("requests", "cpu", "cpu_request_millis", 10**6, "decimal"),
    ("limits", "cpu", "cpu_limit_millis", 10**6, "decimal"),
    ("limits", "memory", "memory_limit_bytes", 10**9, "binary"),
)


@dataclass(frozen=True, slots=True)
class ContainerResize:
    """New resources of a running container. `needs_restart`: by its resize policy it cannot get them in place."""

    resources: Resources
    needs_restart: bool


def resources_of(container: Container) -> Resources:
    resources = container.get("resources") or {}
    return Resources(
        **{field: _amount(resources.get(side) or {}, name, unit) for side, name, field, unit, _ in _FIELDS},
        memory_request_bytes=_amount(resources.get("requests") or {}, "memory", 10**9),
    )


def _amount(amounts: Mapping[str, Any], name: str, nanos_per_unit: int) -> int | None:
    """Rounded up; None means unlimited."""
    return -(-parse_nanos(str(amounts[name])) // nanos_per_unit) or None if name in amounts else None


def resize_of(container: Container, known: ContainerStatus) -> ContainerResize | None:
    """What the container needs to have its resources; None if it has them or is not running."""
    if not known.is_running:
        return None
    actual = known.config.resources
    wanted = replace(resources_of(container), pids_limit=actual.pids_limit)
    changed = {name for _, name, field, *_ in _FIELDS if getattr(wanted, field) != getattr(actual, field)}
    if actual.memory_request_bytes not in (None, wanted.memory_request_bytes):
        changed.add("memory")
    needs_restart = any(
        each.get("resourceName") in changed and each.get("restartPolicy") == "RestartContainer"
        for each in container.get("resizePolicy") or ()
    )
    # Nothing enforces a memory request: in place, a new one is in effect at once.
    is_same = replace(wanted, memory_request_bytes=actual.memory_request_bytes) == actual
    return None if is_same and not needs_restart else ContainerResize(wanted, needs_restart)


def reported_resources(container: Container, known: ContainerStatus) -> Object:
    """The container's resources, with those that the runtime has while it is running."""
    resources = container.get("resources") or {}
    shown: Object = {key: dict(each) if key != "claims" else each for key, each in resources.items()}
    wanted = resources_of(container)
    for side, name, field, unit, style in _FIELDS if known.is_running else ():
        actual = getattr(known.config.resources, field)
        if side in shown and actual is not None and actual != getattr(wanted, field):
            shown[side][name] = str(Quantity(actual * unit, style))
    return shown
