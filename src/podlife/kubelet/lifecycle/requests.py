"""What a pod takes of a node: the requests of its containers added up, in the units that messages have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from podlife.api.quantity import parse_nanos
from podlife.kubelet.lifecycle.objects import Pod, containers_of, init_containers_of, is_sidecar

__all__ = ["amount", "pod_requests"]

_POD_LEVEL = ("cpu", "memory")


def amount(resource: str, quantity: str | int) -> int:
    """Thousandths of a CPU, or whole units of anything else, rounded up."""
    nanos = parse_nanos(str(quantity))
    return -(-nanos // (10**6 if resource == "cpu" else 10**9))


def pod_requests(pod: Pod) -> dict[str, int]:
    """Init containers run one after the other, before the regular ones and beside the sidecars that started before
    them: so the largest of these moments counts, for each resource."""
    sidecars: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for container in init_containers_of(pod):
        own = _requests(container)
        moment = sidecars + own
        if is_sidecar(container):
            sidecars = moment
        most |= moment
    regular: Counter[str] = Counter()
    for container in containers_of(pod):
        regular += _requests(container)
    total = most | (regular + sidecars)
    whole = _requests(pod["spec"])
    total.update({key: whole[key] - total[key] for key in _POD_LEVEL if key in whole})
    total.update(_amounts(pod["spec"].get("overhead")))
    return {key: value for key, value in total.items() if value}


def _requests(of: Mapping[str, Any]) -> Counter[str]:
    return _amounts((of.get("resources") or {}).get("requests"))


def _amounts(quantities: Mapping[str, str] | None) -> Counter[str]:
    return Counter({key: amount(key, value) for key, value in (quantities or {}).items()})
