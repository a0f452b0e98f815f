"""Resources that a pod uses on its node: summed requests of its containers, and host ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

from podlife.api.quantity import parse_nanos

Quantities = Mapping[str, str | int]
HostPort = tuple[str, int, str]
"""Protocol, number, and address: empty for all addresses of the node."""

_POD_LEVEL = ("cpu", "memory")


def amount(resource: str, quantity: str | int) -> int:
    """Thousandths of a CPU, or whole units of anything else, rounded up."""
    nanos = parse_nanos(str(quantity))
    return -(-nanos // (10**6 if resource == "cpu" else 10**9))


def amounts(quantities: Quantities | None) -> Counter[str]:
    return Counter({key: amount(key, value) for key, value in (quantities or {}).items()})


def add_up(
    init: Iterable[tuple[Quantities | None, bool]],
    regular: Iterable[Quantities | None],
    *,
    whole: Quantities | None = None,
    overhead: Quantities | None = None,
) -> dict[str, int]:
    """Requests of a whole pod. Init containers, each with whether it is a sidecar, run one after the other, before the
    regular ones and beside the sidecars started before them: for each resource the maximum over time counts. Pod-level
    requests (`whole`) replace the sum for CPU and memory."""
    sidecars: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for requests, is_sidecar in init:
        total = sidecars + amounts(requests)
        if is_sidecar:
            sidecars = total
        most |= total
    together: Counter[str] = Counter()
    for requests in regular:
        together += amounts(requests)
    total = most | (together + sidecars)
    asked = amounts(whole)
    total.update({key: asked[key] - total[key] for key in _POD_LEVEL if key in asked})
    total.update(amounts(overhead))
    return {key: value for key, value in total.items() if value}


def pod_requests(pod: Mapping[str, Any]) -> dict[str, int]:
    """The total resource requests of a plain pod object."""
    spec = pod["spec"]
    return add_up(
        (
            (_requests(each), each.get("restartPolicy") == "Always")
            for each in spec.get("initContainers") or ()
        ),
        (_requests(each) for each in spec.get("containers") or ()),
        whole=_requests(spec),
        overhead=spec.get("overhead"),
    )


def _requests(of: Mapping[str, Any]) -> Quantities | None:
    return (of.get("resources") or {}).get("requests")


def clash(one: HostPort, other: HostPort) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or "" in (one[2], other[2]))


def host_address(text: str) -> str:
    """The address of a `HostPort`."""
    try:
        return "" if not text or ip_address(text).is_unspecified else text
    except ValueError:
        return text
