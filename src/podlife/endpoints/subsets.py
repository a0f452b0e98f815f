"""The Endpoints of a Service: the older form, one object with all addresses. Pure.

A subset has the ports that the same addresses have. More than a thousand addresses are cut off, those of ready pods
last, and an annotation says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from podlife.api.codec import Object, encode
from podlife.endpoints.endpoint import HEADLESS, TRIGGER_TIME, hostname_of, ports_of, target_of
from podlife.endpoints.views import EndpointPod, Endpoints, Service

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_MOST_ADDRESSES = 1000
_FIELDS = {True: "addresses", False: "notReadyAddresses"}


def subsets_of(service: Service, pods: Iterable[EndpointPod]) -> list[Object]:
    family = service.families[0]
    by_port: dict[bytes, tuple[list[Object], dict[str, tuple[Object, bool]]]] = {}
    for pod in pods:
        is_ready = service.spec.publish_not_ready_addresses or pod.is_ready
        addresses = pod.addresses(family)
        if not addresses or (pod.is_terminating and not service.spec.publish_not_ready_addresses):
            continue
        address = _address(pod, service, addresses[0])
        ports = [_without_empty_name(port) for port in ports_of(pod, service)]
        for one in [[port] for port in ports] or ([[]] if not service.spec.ports else []):
            _, found = by_port.setdefault(encode(one), (one, {}))
            found[pod.metadata.uid] = (address, is_ready)
    merged: dict[frozenset[tuple[str, bool]], tuple[list[Object], list[tuple[Object, bool]]]] = {}
    for ports, found in by_port.values():
        key = frozenset((uid, is_ready) for uid, (_, is_ready) in found.items())
        merged.setdefault(key, ([], [*found.values()]))[0].extend(ports)
    return sorted((_subset(ports, found) for ports, found in merged.values()), key=encode)


def _address(pod: EndpointPod, service: Service, ip: str) -> Object:
    address: Object = {
        "ip": ip,
        "hostname": hostname_of(pod, service),
        "nodeName": pod.spec.node_name,
        "targetRef": target_of(pod),
    }
    return {field: value for field, value in address.items() if value}


def _without_empty_name(port: Object) -> Object:
    return {field: value for field, value in port.items() if field != "name" or value}


def _subset(ports: list[Object], found: Iterable[tuple[Object, bool]]) -> Object:
    subset: Object = {}
    for address, is_ready in sorted(
        found, key=lambda one: (_order(one[0]["ip"]), one[0]["targetRef"]["uid"])
    ):
        subset.setdefault(_FIELDS[is_ready], []).append(address)
    return subset | ({"ports": sorted(ports, key=encode)} if ports else {})


def _order(ip: str) -> bytes:
    return ip_address(ip).packed


def labels_of(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in service.metadata.labels.items() if key != HEADLESS}
    return labels | ({HEADLESS: ""} if service.is_headless else {}) | {MANAGED_BY: CONTROLLER}


def wanted_endpoints(
    service: Service, pods: Iterable[EndpointPod], existing: Endpoints | None
) -> Object | None:
    """What to create, or the merge patch for what exists; None if that is as it should be."""
    subsets = subsets_of(service, pods)
    is_cut = _cut(subsets)
    labels = labels_of(service)
    annotations = {_OVER_CAPACITY: "truncated" if is_cut else None}
    if existing is None:
        return {"metadata": {"labels": labels, "annotations": annotations}, "subsets": subsets}
    meta = existing.metadata
    is_marked = meta.annotations.get(_OVER_CAPACITY) == "truncated"
    if (existing.subsets or []) == subsets and meta.labels == labels and is_marked == is_cut:
        return None
    changed = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "labels": dict.fromkeys(meta.labels.keys() - labels.keys()) | labels,
        "annotations": annotations,
    }
    return {"metadata": changed, "subsets": subsets}


def with_trigger_time(wanted: Object, trigger_time: str | None) -> Object:
    annotations = wanted["metadata"]["annotations"]
    annotations[TRIGGER_TIME] = trigger_time
    if "uid" not in wanted["metadata"]:
        # An object that is created has no keys to remove.
        wanted["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value}
    return wanted


def _cut(subsets: list[Object]) -> bool:
    """Cut off what is too much, in place."""
    room = _MOST_ADDRESSES
    total = 0
    for field in _FIELDS.values():
        for subset in subsets:
            addresses = subset.get(field, [])
            total += len(addresses)
            del addresses[max(room, 0) :]
            room -= len(addresses)
            if field in subset and not addresses:
                del subset[field]
    return total > _MOST_ADDRESSES
