"""`pods/resize`: which parts of an update count, and which changes of resources are allowed.

CPU and memory of containers and of the pod as a whole may change, but not be removed, and the QoS class stays. Which
resizes a node can make is for admission (`admission/pod_resize`) and for the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.pod.status import qos_class
from podlife.apiserver.strategies.core.pod.update import MIRROR
from podlife.apiserver.strategies.strategy import keep_field

_LISTS = ("containers", "initContainers")
_SIDES = ("requests", "limits")
_MUTABLE = ("cpu", "memory")


def has_other_counts(wanted: Object, old: Object) -> bool:
    """Whether containers were added or removed."""
    return any(len(wanted.get(field, ())) != len(old.get(field, ())) for field in _LISTS)


def resized_spec(wanted: Object, old: Object) -> Object:
    """The old spec with the resources and resize policies of `wanted`, which has as many containers. A list with other
    names stays as it is wanted, for validation to reject it."""
    spec = dict(old)
    keep_field(spec, wanted, "resources")
    for field in _LISTS:
        pairs = _pairs(field, wanted, old)
        if any(after.get("name") != before.get("name") for after, before in pairs):
            spec[field] = wanted[field]
        elif pairs:
            spec[field] = [{**before, "resources": after.get("resources") or {}} for after, before in pairs]
            for merged, (after, _) in zip(spec[field], pairs, strict=True):
                keep_field(merged, after, "resizePolicy")
    return spec


def _pairs(field: str, new: Object, old: Object) -> list[tuple[Object, Object]]:
    return list(zip(new.get(field, ()), old.get(field, ()), strict=True))


def unresizable(old: Object) -> list[FieldError]:
    """Why the pod can never be resized; nothing else is reported then."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods cannot be resized")]
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    return []


def validate_resize(new: Object, old: Object) -> FieldErrors:
    """What upstream's ValidatePodResize checks of a valid pod."""
    after, before, status = new["spec"], old["spec"], old.get("status") or {}
    if qos_class(after) != (status.get("qosClass") or qos_class(before)):
        shown = (new.get("status") or {}).get("qosClass") or ""
        yield bad_value("spec", shown, "Pod QOS Class may not change as a result of resizing")
    if not _is_supported(status):
        yield forbidden("spec", "Pod running on node without support for resize")
    if _is_set(before.get("resources")) or _is_set(after.get("resources")):
        yield from _validate_pod_level(after.get("resources"), before.get("resources"))
    elif ("resources" in after) is not ("resources" in before):
        yield forbidden("spec", "only cpu and memory resources are mutable")
    if order := [error for field in _LISTS for error in _validate_order(field, after, before)]:
        yield from order
        return
    for field in reversed(_LISTS):
        for index, (mine, theirs) in enumerate(_pairs(field, after, before)):
            path = f"spec.{field}[{index}].resources"
            yield from _validate_removal(mine, theirs, path, "resource")
    for mine, theirs in _pairs("containers", after, before):
        if not _is_only_resized(mine, theirs):
            yield forbidden("spec", "only cpu and memory resources are mutable")
    for index, (mine, theirs) in enumerate(_pairs("initContainers", after, before)):
        yield from _validate_init_container(mine, theirs, f"spec.initContainers[{index}]")


def _is_supported(status: Object) -> bool:
    """Whether the node reports the resources of running containers, as all that can resize do."""
    statuses = status.get("containerStatuses", ())
    running = (each for each in statuses if (each.get("state") or {}).get("running") is not None)
    return "resources" in next(running, {"resources": {}})


def _is_set(resources: Mapping[str, Any] | None) -> bool:
    return any((resources or {}).get(side) for side in _SIDES)


def _validate_pod_level(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> FieldErrors:
    if old is not None and new is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    yield from _validate_removal(
        {"resources": new}, {"resources": old}, "spec.resources", "pod-level resource"
    )
    if _fixed(new) != _fixed(old) or (new or {}).get("claims") != (old or {}).get("claims"):
        yield forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _validate_order(field: str, new: Object, old: Object) -> FieldErrors:
    if len(new.get(field, ())) != len(old.get(field, ())):
        yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
        return
    for index, (mine, theirs) in enumerate(_pairs(field, new, old)):
        if mine.get("name") != theirs.get("name"):
            yield forbidden(
                f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize"
            )


def _validate_removal(new: Object, old: Object, path: str, noun: str) -> FieldErrors:
    for side in _SIDES:
        before, after = ((each.get("resources") or {}).get(side) or {} for each in (old, new))
        if before.keys() - after.keys():
            yield forbidden(f"{path}.{side}", f"{noun} {side} cannot be removed")


def _fixed(resources: Mapping[str, Any] | None) -> dict[tuple[str, str], int]:
    """The amounts that a resize may not change."""
    return {
        (side, name): parse_nanos(text)
        for side in _SIDES
        for name, text in ((resources or {}).get(side) or {}).items()
        if name not in _MUTABLE
    }


def _is_only_resized(new: Object, old: Object) -> bool:
    """Claims count as changed, as upstream ignores those of an update."""
    rest, rest_before = ({**each, "resources": None} for each in (new, old))
    resources = old.get("resources") or {}
    return (
        rest == rest_before
        and not resources.get("claims")
        and _fixed(new.get("resources")) == _fixed(resources)
    )


def _validate_init_container(new: Object, old: Object, path: str) -> FieldErrors:
    if not _is_only_resized(new, old):
        yield forbidden(path, "only cpu and memory resources for init or sidecar containers are mutable")
    policies = [each.get("restartPolicy") for each in new.get("resizePolicy", ())]
    if new.get("restartPolicy") != "Always" and new != old and "RestartContainer" in policies:
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        yield from [forbidden(path, detail)] * policies.count("RestartContainer")
