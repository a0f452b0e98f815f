"""EndpointSlices: the addresses behind a service, in parts."""

from __future__ import annotations

import ipaddress

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, required, too_many
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from podlife.apiserver.strategies.core.services import validate_endpoint_ip
from podlife.apiserver.strategies.field_checks import (
    IP_RULE,
    PROTOCOLS,
    check_at,
    immutable,
    is_ip,
    one_of,
    require_at,
    required_choice,
)
from podlife.apiserver.strategies.strategy import Strategy

_TYPES = frozenset({"FQDN", "IPv4", "IPv6"})
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100
_MOST_PORTS = 20_000
_MOST_HINTS = 8


class EndpointSliceStrategy(Strategy):
    def default(self, obj: Object) -> None:
        # Go writes both even if there are none.
        obj.setdefault("endpoints", None)
        obj.setdefault("ports", None)
        for port in obj["ports"] or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")
        for endpoint in obj["endpoints"] or ():
            # v1 has it only to read objects of before.
            endpoint.pop("deprecatedTopology", None)

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Object, old: Object) -> None:
        fields = ("addressType", "endpoints", "ports")
        is_same = all(new.get(field) == old.get(field) for field in fields)
        if not is_same or new["metadata"].get("labels") != old["metadata"].get("labels"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> list[FieldError]:
        kind = obj.get("addressType", "")
        ports, endpoints = obj.get("ports") or [], obj.get("endpoints") or []
        return [
            *required_choice("addressType", kind, _TYPES),
            *_validate_ports(ports),
            *_validate_endpoints(endpoints, kind),
        ]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("addressType", new.get("addressType"), old.get("addressType"))

    def warnings(self, obj: Object) -> list[str]:
        if obj.get("addressType") != "FQDN":
            return []
        return ["spec.addressType: FQDN endpoints are deprecated"]


def _validate_ports(ports: list[Object]) -> FieldErrors:
    if len(ports) > _MOST_PORTS:
        yield too_many("ports", len(ports), _MOST_PORTS)
        return
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port["name"]
        if name:
            yield from check_at(f"{path}.name", name, check_dns_label)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from one_of(f"{path}.protocol", port["protocol"], PROTOCOLS)
        if (protocol := port.get("appProtocol")) is not None:
            yield from check_at(f"{path}.appProtocol", protocol, check_label_key)


def _validate_endpoints(endpoints: list[Object], kind: str) -> FieldErrors:
    if len(endpoints) > _MOST_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _validate_endpoint(f"endpoints[{index}]", endpoint, kind)


def _validate_endpoint(path: str, endpoint: Object, kind: str) -> FieldErrors:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        yield from _validate_address(f"{path}.addresses", index, address, kind)
    if (node := endpoint.get("nodeName")) is not None:
        yield from check_at(f"{path}.nodeName", node, check_dns_subdomain)
    if (hostname := endpoint.get("hostname")) is not None:
        yield from check_at(f"{path}.hostname", hostname, check_dns_label)
    hints = endpoint.get("hints") or {}
    for field, check in (("forZones", check_label_value), ("forNodes", check_dns_subdomain)):
        names = [each.get("name", "") for each in hints.get(field) or ()]
        if len(names) > _MOST_HINTS:
            yield too_many(f"{path}.hints.{field}", len(names), _MOST_HINTS)
            return
        for index, name in enumerate(names):
            at = f"{path}.hints.{field}[{index}].name"
            if name in names[:index]:
                yield duplicate(at, name)
            yield from check_at(at, name, check)


def _validate_address(path: str, index: int, address: str, kind: str) -> FieldErrors:
    at = f"{path}[{index}]"
    if kind == "FQDN":
        yield from require_at(at, address.removesuffix("."), check_dns_subdomain)
        return
    if kind not in _TYPES:
        return
    if not is_ip(address):
        yield bad_value(at, address, IP_RULE)
        return
    if f"IPv{ipaddress.ip_address(address).version}" != kind:
        yield bad_value(path, address, f"must be an {kind} address")
    yield from validate_endpoint_ip(address, at, IP_RULE)
