"""The Endpoints of a Service: the older form, one object with all addresses. Pure.

A subset has the ports that the same addresses have. More than a thousand addresses are cut off, those of ready pods
last and every subset by its share, and an annotation says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from podlife.api.codec import Object, encode
from podlife.endpoints.endpoint import HEADLESS, TRIGGER_TIME, hostname_of, ports_of, target_of
from podlife.endpoints.views import EndpointPod, Endpoints, Service

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
CONTROLLER = "endpoint-controller"
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_MOST_ADDRESSES = 1000
_FIELDS = {True: "addresses", False: "notReadyAddresses"}

_Identity = tuple[str, str]
"""The address, and the UID of its pod."""


def subsets_of(service: Service, pods: Iterable[EndpointPod]) -> list[Object]:
    family = service.families[0]
    subsets: list[Object] = []
    for pod in pods:
        is_ready = service.spec.publish_not_ready_addresses or pod.is_ready
        addresses = pod.addresses(family)
        if not addresses or (pod.is_terminating and not service.spec.publish_not_ready_addresses):
            continue
        ports = [_without_empty_name(port) for port in ports_of(pod, service)]
        if ports or not service.spec.ports:
            subsets.append({_FIELDS[is_ready]: [_address(pod, service, addresses[0])], "ports": ports})
    return repack(subsets)


def repack(subsets: Iterable[Object]) -> list[Object]:
    """The canonical form: addresses with the same ports together, in the order of their text as upstream has them. An
    address that is both is not ready."""
    addresses: dict[_Identity, Object] = {}
    by_port: dict[bytes, tuple[list[Object], dict[_Identity, bool]]] = {}
    for subset in subsets:
        for one in [[port] for port in subset.get("ports") or ()] or [[]]:
            _, found = by_port.setdefault(encode([dict(sorted(port.items())) for port in one]), (one, {}))
            for is_ready, field in _FIELDS.items():
                for address in subset.get(field) or ():
                    identity = (address["ip"], (address.get("targetRef") or {}).get("uid", ""))
                    addresses.setdefault(identity, address)
                    found[identity] = found.get(identity, True) and is_ready
    merged: dict[frozenset[tuple[_Identity, bool]], list[Object]] = {}
    for ports, found in by_port.values():
        merged.setdefault(frozenset(found.items()), []).extend(ports)
    repacked = []
    for found_items, ports in merged.items():
        subset = {"ports": sorted(ports, key=encode)} if ports else {}
        for identity, is_ready in sorted(found_items):
            subset.setdefault(_FIELDS[is_ready], []).append(addresses[identity])
        repacked.append(subset)
    return sorted(repacked, key=encode)


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
    """Cut off what is too much, in place: each subset keeps its share."""
    ready, others = (sum(len(subset.get(field, ())) for subset in subsets) for field in _FIELDS.values())
    if ready + others <= _MOST_ADDRESSES:
        return False
    is_ready_cut = ready > _MOST_ADDRESSES
    field, total = _FIELDS[is_ready_cut], ready if is_ready_cut else others
    room = left = _MOST_ADDRESSES - (0 if is_ready_cut else ready)
    for subset in subsets:
        if is_ready_cut:
            subset.pop(_FIELDS[False], None)
        addresses = subset.pop(field, [])
        share = min(ceil(len(addresses) * room / total), left)
        if share:
            subset[field] = addresses[:share]
        left -= share
    # The server takes no subset without addresses.
    subsets[:] = [subset for subset in subsets if subset.keys() & _FIELDS.values()]
    return True
