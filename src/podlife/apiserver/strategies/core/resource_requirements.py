"""Resource requirements: allowed resource names, requests within limits."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_found,
    not_supported,
    required,
)
from podlife.api.names import check_dns_label, check_label_key
from podlife.api.quantity import NANOS, parse_nanos
from podlife.apiserver.strategies.field_checks import check_at

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"}
    | {"persistentvolumeclaims", "services.nodeports", "services.loadbalancers"}
)
_STANDARD = (
    _CONTAINER_RESOURCES
    | _COUNTED
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER_RESOURCES}
    | {"storage", "requests.storage"}
)
_POD_LEVEL = frozenset({"cpu", "memory"})
_HUGE_PAGES = "hugepages-"


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    if _is_native(name) or name.startswith("requests."):
        return False
    return not check_label_key(f"requests.{name}")


def may_overcommit(name: str) -> bool:
    return _is_native(name) and not name.startswith(_HUGE_PAGES)


def validate_resource_name(path: str, name: str) -> list[FieldError]:
    """The name of any resource: qualified, or one of Kubernetes' own."""
    errors = check_at(path, name, check_label_key)
    if not errors and "/" not in name and not _is_standard(name):
        errors.append(bad_value(path, name, "must be a standard resource type or fully qualified"))
    return errors


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith((_HUGE_PAGES, "requests.hugepages-"))


def is_quota_resource(name: str) -> bool:
    """Whether it is one of Kubernetes' own names that a quota may limit."""
    return _is_standard(name) and name != "storage"


def validate_container_resource(path: str, name: str) -> FieldErrors:
    if name in _CONTAINER_RESOURCES:
        return
    yield from validate_resource_name(path, name)
    if "/" not in name:
        if not name.startswith(_HUGE_PAGES):
            yield bad_value(path, name, "must be a standard resource for containers")
    elif not _is_native(name) and not is_extended_resource(name):
        yield bad_value(path, name, "doesn't follow extended resource name standard")


def _validate_pod_resource(path: str, name: str) -> list[FieldError]:
    errors = validate_resource_name(path, name)
    if not errors and name not in _POD_LEVEL and not name.startswith(_HUGE_PAGES):
        errors.append(not_supported(path, name, {*_POD_LEVEL, _HUGE_PAGES}))
    return errors


def validate_quantity(path: str, name: str, text: str) -> FieldErrors:
    nanos = parse_nanos(text)
    if nanos < 0:
        yield bad_value(path, text, "must be greater than or equal to 0")
    if nanos % NANOS and (name in _COUNTED or is_extended_resource(name)):
        yield bad_value(path, text, "must be an integer")


def validate_resources(
    resources: Object, path: str, *, claims: frozenset[str], pod_level: bool = False
) -> FieldErrors:
    """`requests`, `limits` and `claims` of a container, or of a whole pod."""
    if not resources:
        return
    check_name = _validate_pod_resource if pod_level else validate_container_resource
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            # The usual case, without building its path.
            if name in _CONTAINER_RESOURCES and parse_nanos(text) >= 0 and not pod_level:
                continue
            at = f"{path}.{side}[{name}]"
            yield from check_name(at, name)
            yield from validate_quantity(at, name, text)
    for name, text in requests.items():
        yield from _validate_request(name, text, limits.get(name), path)
    names = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE_PAGES) for name in names) and not names & _POD_LEVEL:
        yield forbidden(path, "HugePages require cpu or memory")
    if wanted := resources.get("claims"):
        yield from _validate_claims(wanted, claims, f"{path}.claims")


def _validate_request(name: str, text: str, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        if may_overcommit(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    requested, most = parse_nanos(text), parse_nanos(limit)
    if requested != most and not may_overcommit(name):
        return [bad_value(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")]
    if requested > most:
        return [bad_value(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _validate_claims(wanted: list[Object], known: frozenset[str], path: str) -> FieldErrors:
    seen: set[str] = set()
    claimed: set[str] = set()
    # Built once: with many names and many unmatched claims the cost would be quadratic.
    names = f": {', '.join(sorted(known))}" if known else " which is empty"
    missing = f"must be one of the names in pod.spec.resourceClaims{names}"
    for index, claim in enumerate(wanted):
        at = f"{path}[{index}]"
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required(at)
            continue
        key = f"{name}/{request}" if request else name
        # A claim as a whole overlaps with each of its requests.
        overlaps = not request and name in claimed
        if name in seen or key in seen or overlaps:
            yield duplicate(at, name if name in seen else key)
        if request:
            yield from check_at(f"{at}.request", request, check_dns_label)
        seen.add(key)
        claimed.add(name)
        if name not in known:
            yield not_found(at, name, missing)
