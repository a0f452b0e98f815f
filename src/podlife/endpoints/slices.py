"""Which EndpointSlices a Service needs, and which changes lead there from those it has. Pure.

A slice has up to a hundred endpoints of one address family with the same ports. Changes are few, as upstream's: an
endpoint stays in its slice, slices that change anyway are filled first, and a slice is not deleted if another one
would have to be created. A Service without endpoints has one empty slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podlife.api.codec import Object, encode
from podlife.api.names import check_dns_subdomain
from podlife.api.views import Metadata
from podlife.endpoints.endpoint import HEADLESS, TRIGGER_TIME, endpoint_of, ports_of
from podlife.endpoints.views import EndpointPod, EndpointSlice, Service

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)
_MOST_ENDPOINTS = 100

_Identity = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SliceContent:
    ports: list[Object]
    endpoints: list[Object]


@dataclass(frozen=True, slots=True)
class SliceChanges:
    create: list[SliceContent] = field(default_factory=list)
    update: list[tuple[EndpointSlice, SliceContent]] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)


def plan_slices(
    service: Service,
    family: str,
    pods: Iterable[EndpointPod],
    zones: Mapping[str, str],
    existing: Sequence[EndpointSlice],
) -> SliceChanges:
    """`zones` are those of the nodes by name; `existing` are the Service's slices of this family."""
    groups: dict[bytes, tuple[list[Object], dict[_Identity, Object]]] = {}
    for pod in pods:
        endpoint = endpoint_of(pod, service, family, zones.get(pod.spec.node_name, ""))
        if endpoint is not None:
            ports = ports_of(pod, service)
            group = groups.setdefault(key_of_ports(ports), (ports, {}))
            group[1][identity_of(endpoint)] = endpoint
    changes = SliceChanges()
    owned: dict[bytes, list[EndpointSlice]] = {}
    for each in existing:
        if _is_owned(each, service):
            owned.setdefault(key_of_ports(each.ports or []), []).append(each)
        else:
            # Of an earlier Service of this name.
            changes.delete.append(each)
    for key, (ports, endpoints) in groups.items():
        _place(changes, owned.pop(key, []), ports, endpoints, slice_labels(service))
    changes.delete.extend(each for others in owned.values() for each in others)
    if not changes.create and len(changes.delete) == len(existing):
        changes.create.append(SliceContent([], []))
    _reuse(changes, service)
    return changes


def _place(
    changes: SliceChanges,
    slices: Iterable[EndpointSlice],
    ports: list[Object],
    left: dict[_Identity, Object],
    labels: Mapping[str, str],
) -> None:
    changed: list[tuple[EndpointSlice, list[Object]]] = []
    unchanged: list[EndpointSlice] = []
    for each in slices:
        before = each.endpoints or []
        found = (left.pop(identity_of(endpoint), None) for endpoint in before)
        kept = [endpoint for endpoint in found if endpoint is not None]
        if before and not kept:
            changes.delete.append(each)
        elif kept != before or each.metadata.labels != labels:
            changed.append((each, kept))
        else:
            unchanged.append(each)
    for each, kept in sorted(changed, key=lambda one: len(one[1]), reverse=True):
        content = SliceContent(ports, [*kept, *_take(left, _MOST_ENDPOINTS - len(kept))])
        changes.update.append((each, content))
    while left:
        room = [each for each in unchanged if len(each.endpoints or ()) + len(left) <= _MOST_ENDPOINTS]
        if not room:
            changes.create.append(SliceContent(ports, _take(left, _MOST_ENDPOINTS)))
            continue
        fullest = max(room, key=lambda each: len(each.endpoints or ()))
        content = SliceContent(ports, [*(fullest.endpoints or ()), *_take(left, len(left))])
        changes.update.append((fullest, content))


def _take(left: dict[_Identity, Object], number: int) -> list[Object]:
    return [left.pop(each) for each in [*left][:number]]


def _reuse(changes: SliceChanges, service: Service) -> None:
    """Write what is to be created into slices that would be deleted."""
    spare = [each for each in changes.delete if _is_owned(each, service)]
    while changes.create and spare:
        each, content = spare.pop(), changes.create.pop()
        changes.delete.remove(each)
        is_same = (each.endpoints or [], each.ports or []) == (content.endpoints, content.ports)
        if not is_same or each.metadata.labels != slice_labels(service):
            changes.update.append((each, content))


def identity_of(endpoint: Object) -> _Identity:
    target = endpoint.get("targetRef") or {}
    return (*sorted(endpoint["addresses"]), endpoint.get("hostname", ""), target.get("name", ""))


def key_of_ports(ports: Iterable[Object]) -> bytes:
    return b",".join(sorted(encode(dict(sorted(port.items()))) for port in ports))


def _is_owned(each: EndpointSlice, service: Service) -> bool:
    uid = service.metadata.uid
    return any(owner.uid == uid and owner.kind == "Service" for owner in each.metadata.owner_references)


def slice_labels(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    if service.is_headless:
        labels[HEADLESS] = ""
    return labels | {SERVICE_NAME: service.metadata.name, MANAGED_BY: CONTROLLER}


def new_slice(service: Service, family: str, content: SliceContent, trigger_time: str | None) -> Object:
    annotations = {TRIGGER_TIME: trigger_time} if trigger_time else {}
    meta = {"labels": slice_labels(service), "annotations": annotations}
    return slice_of("Service", service.metadata, family, content, meta)


def slice_of(kind: str, owner: Metadata, family: str, content: SliceContent, meta: Object) -> Object:
    prefix = f"{owner.name}-"
    return {
        "metadata": {
            "generateName": owner.name if check_dns_subdomain(prefix, prefix=True) else prefix,
            "ownerReferences": [controller_reference(kind, owner)],
            **meta,
        },
        "addressType": family,
        "endpoints": content.endpoints,
        "ports": content.ports,
    }


def controller_reference(kind: str, owner: Metadata) -> Object:
    reference = {"apiVersion": "v1", "kind": kind, "name": owner.name, "uid": owner.uid}
    return reference | {"controller": True, "blockOwnerDeletion": True}


def slice_patch(
    each: EndpointSlice, service: Service, content: SliceContent, trigger_time: str | None
) -> Object:
    meta = {"labels": slice_labels(service), "annotations": {TRIGGER_TIME: trigger_time}}
    return patch_of(each, content, meta)


def patch_of(each: EndpointSlice, content: SliceContent, meta: Object) -> Object:
    """A merge patch, after which the slice has these labels and no others."""
    before = each.metadata
    labels = dict.fromkeys(before.labels.keys() - meta["labels"].keys()) | meta["labels"]
    known = {"uid": before.uid, "resourceVersion": before.resource_version}
    return {
        "metadata": known | meta | {"labels": labels},
        "endpoints": content.endpoints,
        "ports": content.ports,
    }
