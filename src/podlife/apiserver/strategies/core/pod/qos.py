"""Quality-of-service class of a pod, fixed at creation."""

from __future__ import annotations

from collections.abc import Iterable

from podlife.api.codec import Object
from podlife.api.quantity import parse_nanos

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed if everything has limits equal to its requests, BestEffort if nothing has either."""
    if (whole := spec.get("resources")) is not None:
        parts: Iterable[Object] = [whole]
    else:
        every = [*spec.get("containers", ()), *spec.get("initContainers", ())]
        parts = [container.get("resources") or {} for container in every]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for resources in parts:
        _add(requests, resources.get("requests"))
        limited = _add(limits, resources.get("limits"))
        # A pod as a whole may omit its limits; a container may not.
        if limited < 2 and not (whole is not None and not resources.get("limits")):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(totals: dict[str, int], amounts: Object | None) -> int:
    """Add up cpu and memory; returns how many of them are set."""
    if not amounts:
        return 0
    found = 0
    for name in _COMPUTE:
        if (text := amounts.get(name)) is not None and (nanos := parse_nanos(text)) > 0:
            totals[name] = totals.get(name, 0) + nanos
            found += 1
    return found
