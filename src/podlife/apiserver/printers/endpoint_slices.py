"""EndpointSlices."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, name
from podlife.apiserver.resource import Printer

_MOST_SHOWN = 3


def _shown(values: list[str]) -> str:
    if not values:
        return "<unset>"
    more = f" + {len(values) - _MOST_SHOWN} more..." if len(values) > _MOST_SHOWN else ""
    return ",".join(values[:_MOST_SHOWN]) + more


def _slice(obj: Object, now: float) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return [name(obj), obj.get("addressType", ""), _shown(ports), _shown(addresses), age(obj, now)]


ENDPOINT_SLICES = Printer(columns("endpointslices.discovery.k8s.io"), _slice)
