"""What a pod takes of a node, read from a plain API object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.pod_requests import Quantities, add_up, amount
from podlife.kubelet.pod_fields import (
    Pod,
    containers_of,
    init_containers_of,
    is_sidecar,
)

__all__ = ["amount", "pod_requests"]


def pod_requests(pod: Pod) -> dict[str, int]:
    return add_up(
        ((_requests(each), is_sidecar(each)) for each in init_containers_of(pod)),
        (_requests(each) for each in containers_of(pod)),
        whole=_requests(pod["spec"]),
        overhead=pod["spec"].get("overhead"),
    )


def _requests(of: Mapping[str, Any]) -> Quantities | None:
    return (of.get("resources") or {}).get("requests")
