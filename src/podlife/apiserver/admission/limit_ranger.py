"""LimitRanger: the LimitRanges of a namespace give containers default resources, and bound pods, containers and claims.

Defaults are set before an object is validated, limits are enforced on what is about to be stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from podlife.api.codec import Object, decode_object
from podlife.api.quantity import NANOS, parse_nanos
from podlife.api.quota import Usage, parse_usage, pod_resources
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.storage import Store

_RANGES = "limitranges"
_CLAIMS = "persistentvolumeclaims"
_ANNOTATION = "kubernetes.io/limit-ranger"


def set_limit_defaults(store: Store) -> Plugin:
    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if attributes.new is not None and attributes.resource.key == "pods":
            for items in _limits_for(attributes, store):
                _set_defaults(items, attributes.new)

    return plugin


def enforce_limits(store: Store) -> Plugin:
    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if attributes.new is None:
            return
        check = _check_claim if attributes.resource.key == _CLAIMS else _check_pod
        for items in _limits_for(attributes, store):
            # As Go shows several errors, each once.
            if problems := [*dict.fromkeys(check(items, attributes.new))]:
                raise attributes.forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    return plugin


def _limits_for(attributes: AdmissionRequest, store: Store) -> Iterator[Sequence[Object]]:
    """The items of each LimitRange that the request is subject to."""
    if not store.count(_RANGES) or attributes.resource.key not in ("pods", _CLAIMS):
        return
    is_pod, is_update = attributes.resource.key == "pods", attributes.operation is Operation.UPDATE
    if attributes.subresource != ("resize" if is_pod and is_update else ""):
        return
    if attributes.old is not None and "deletionTimestamp" in attributes.old["metadata"]:
        return
    for record in store.list(_RANGES, attributes.namespace):
        yield decode_object(record.value)["spec"].get("limits") or ()


def _set_defaults(items: Sequence[Object], pod: Object) -> None:
    limits, requests = (
        {
            name: text
            for item in items
            if item["type"] == "Container"
            for name, text in (item.get(field) or {}).items()
        }
        for field in ("default", "defaultRequest")
    )
    notes = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            for side, defaults in (("requests", requests), ("limits", limits)):
                if added := defaults.keys() - (container.get("resources", {}).get(side) or {}).keys():
                    given = container.setdefault("resources", {}).setdefault(side, {})
                    given.update({name: defaults[name] for name in sorted(added)})
                    notes.append(
                        f"{', '.join(sorted(added))} {side.removesuffix('s')} for {word} {container['name']}"
                    )
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _check_claim(items: Sequence[Object], claim: Object) -> Iterator[str]:
    requests = parse_usage((claim["spec"].get("resources") or {}).get("requests"))
    for item in items:
        if item["type"] == "PersistentVolumeClaim":
            yield from _check_min(item, requests, {})
            for name, text, most in _bounds(item, "max"):
                what = f"maximum {name} usage per {item['type']} is {text}"
                if name not in requests:
                    yield f"{what}.  No request is specified"
                elif requests[name].nanos > most:
                    yield f"{what}, but request is {requests[name]}"


def _check_pod(items: Sequence[Object], pod: Object) -> Iterator[str]:
    spec = pod["spec"]
    for item in items:
        if item["type"] == "Container":
            for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _check_all(
                    item, parse_usage(resources.get("requests")), parse_usage(resources.get("limits"))
                )
        elif item["type"] == "Pod":
            yield from _check_all(item, pod_resources(pod, "requests"), pod_resources(pod, "limits"))


def _check_all(item: Object, requests: Usage, limits: Usage) -> Iterator[str]:
    yield from _check_min(item, requests, limits)
    for name, text, most in _bounds(item, "max"):
        what = f"maximum {name} usage per {item['type']} is {text}"
        if name not in limits:
            yield f"{what}.  No limit is specified"
        elif limits[name].nanos > most:
            yield f"{what}, but limit is {limits[name]}"
        elif name in requests and requests[name].nanos > most:
            yield f"{what}, but request is {requests[name]}"
    for name, text, ratio in _bounds(item, "maxLimitRequestRatio"):
        what = f"{name} max limit to request ratio per {item['type']} is {text}"
        request, limit = (amounts[name].nanos if name in amounts else 0 for amounts in (requests, limits))
        if not request:
            yield f"{what}, but no request is specified or request is 0"
        elif not limit:
            yield f"{what}, but no limit is specified or limit is 0"
        elif limit * NANOS > ratio * request:
            yield f"{what}, but provided ratio is {limit / request:f}"


def _check_min(item: Object, requests: Usage, limits: Usage) -> Iterator[str]:
    for name, text, least in _bounds(item, "min"):
        what = f"minimum {name} usage per {item['type']} is {text}"
        if name not in requests:
            yield f"{what}.  No request is specified"
        elif requests[name].nanos < least:
            yield f"{what}, but request is {requests[name]}"
        elif name in limits and limits[name].nanos < least:
            yield f"{what}, but limit is {limits[name]}"


def _bounds(item: Object, field: str) -> Iterable[tuple[str, str, int]]:
    texts = item.get(field) or {}
    return ((name, texts[name], parse_nanos(texts[name])) for name in sorted(texts))
