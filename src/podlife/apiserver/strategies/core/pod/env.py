"""Environment variables, their sources, and the pod fields they may refer to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.names import (
    check_config_key,
    check_dns_label,
    check_dns_subdomain,
    check_env_name,
    check_label_key,
)
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.field_checks import check_at, check_backsteps, require_at

_IDENTITY = {"metadata.name", "metadata.namespace", "metadata.uid"}
_ENV_FIELDS = frozenset(
    _IDENTITY
    | {"spec.nodeName", "spec.serviceAccountName"}
    | {"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)
VOLUME_FIELDS = frozenset(_IDENTITY | {"metadata.labels", "metadata.annotations"})
_READABLE = _ENV_FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCE_FIELDS = frozenset(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_DIVISIBLE = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_HUGE_PAGE_FIELDS = ("requests.hugepages-", "limits.hugepages-")
_SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_SIZE_DIVISORS = frozenset(_SIZES.split(", "))
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def validate_env(variables: Sequence[Object], path: str) -> FieldErrors:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            yield required(f"{path}[{index}].name")
        elif check_env_name(name):
            yield from check_at(f"{path}[{index}].name", name, check_env_name)
        if "valueFrom" in variable:
            yield from _validate_source(variable, f"{path}[{index}].valueFrom")


def _validate_source(variable: Object, path: str) -> FieldErrors:
    source: Object = variable["valueFrom"]
    named = [kind for kind in _ENV_SOURCES if source.get(kind) is not None]
    for kind in named:
        reference, at = source[kind], f"{path}.{kind}"
        if kind == "fieldRef":
            yield from validate_field_ref(reference, at, _ENV_FIELDS)
        elif kind == "resourceFieldRef":
            yield from validate_resource_field_ref(reference, at, needs_container=False)
        elif kind == "fileKeyRef":
            yield from _validate_file_key(reference, at)
        else:
            yield from check_at(f"{at}.name", reference.get("name", ""), check_dns_subdomain)
            yield from require_at(f"{at}.key", reference.get("key", ""), check_config_key)
    if not named:
        yield bad_value(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield bad_value(path, "", "may not be specified when `value` is not empty")
    elif len(named) > 1:
        yield bad_value(path, "", "may not have more than one field specified at a time")


def _validate_file_key(reference: Object, path: str) -> FieldErrors:
    yield from require_at(f"{path}.key", reference.get("key", ""), check_env_name)
    yield from require_at(f"{path}.volumeName", reference.get("volumeName", ""), check_dns_label)
    yield from require_at(f"{path}.path", reference.get("path", ""), check_backsteps)


def validate_field_ref(reference: Object, path: str, fields: frozenset[str]) -> list[FieldError]:
    """A field of the pod itself, whole or one entry of its labels or annotations."""
    if not (field := reference.get("fieldPath")):
        return [required(f"{path}.fieldPath")]
    version = reference.get("apiVersion", "v1")
    holder, bracket, rest = field.partition("['")
    subscript = rest[:-2] if bracket and rest.endswith("']") else ""
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscript:
        if holder not in ("metadata.annotations", "metadata.labels"):
            problem = f"field label does not support subscript: {field}"
    elif field not in _READABLE and field != "spec.host":
        problem = f"field label not supported: {field}"
    if problem:
        return [bad_value(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if subscript:
        key = subscript.lower() if holder == "metadata.annotations" else subscript
        return check_at(path, key, check_label_key)
    if field not in fields:
        return [not_supported(f"{path}.fieldPath", field, fields)]
    return []


def validate_resource_field_ref(reference: Object, path: str, *, needs_container: bool) -> FieldErrors:
    """A request or limit of a container."""
    resource = reference.get("resource", "")
    if needs_container and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGE_FIELDS):
        yield not_supported(f"{path}.resource", resource, _RESOURCE_FIELDS)
    divisor = reference.get("divisor", "0")
    if parse_nanos(divisor):
        yield from _validate_divisor(resource, divisor, path)


def _validate_divisor(resource: str, divisor: str, path: str) -> list[FieldError]:
    name = resource.partition(".")[2]
    shown = "hugepages" if name.startswith("hugepages-") else _DIVISIBLE.get(name)
    allowed, words = ({"1", "1m"}, "1m and 1") if name == "cpu" else (_SIZE_DIVISORS, _SIZES)
    if shown is None or divisor in allowed:
        return []
    detail = f"only divisor's values {words} are supported with the {shown} resource"
    return [bad_value(f"{path}.divisor", resource, detail)]


def validate_env_from(sources: Sequence[Object], path: str) -> FieldErrors:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := source.get("prefix", ""):
            yield from check_at(f"{at}.prefix", prefix, check_env_name)
        named = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in named:
            name = source[kind].get("name", "")
            yield from require_at(f"{at}.{kind}.name", name, partial(check_dns_subdomain, prefix=True))
        if not named:
            yield bad_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(named) > 1:
            yield bad_value(path, "", "may not have more than one field specified at a time")
