"""Environment variables, their sources, and the pod fields they may refer to."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, not_supported, required
from podlife.api.names import (
    check_config_key,
    check_dns_label,
    check_dns_subdomain,
    check_env_name,
    check_label_key,
)
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.field_checks import problems_at, with_backsteps

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
_HUGE_PAGE_FIELDS = ("requests.hugepages-", "limits.hugepages-")
_SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_SIZE_DIVISORS = frozenset(_SIZES.split(", "))
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def validate_env(variables: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        elif problems := check_env_name(name):
            errors += problems_at(f"{path}[{index}].name", name, problems)
        if "valueFrom" in variable:
            errors += _validate_source(variable, f"{path}[{index}].valueFrom")
    return errors


def _validate_source(variable: Object, path: str) -> list[FieldError]:
    source: Object = variable["valueFrom"]
    errors: list[FieldError] = []
    named = [kind for kind in _ENV_SOURCES if source.get(kind) is not None]
    for kind in named:
        reference, at = source[kind], f"{path}.{kind}"
        if kind == "fieldRef":
            errors += validate_field_ref(reference, at, _ENV_FIELDS)
        elif kind == "resourceFieldRef":
            errors += validate_resource_field_ref(reference, at, needs_container=False)
        elif kind == "fileKeyRef":
            errors += _validate_file_key(reference, at)
        else:
            errors += _validate_key(reference, at)
    if not named:
        errors.append(bad_value(path, "", _NO_SOURCE))
    elif variable.get("value"):
        errors.append(bad_value(path, "", "may not be specified when `value` is not empty"))
    elif len(named) > 1:
        errors.append(bad_value(path, "", "may not have more than one field specified at a time"))
    return errors


def _validate_key(reference: Object, path: str) -> list[FieldError]:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = problems_at(f"{path}.name", name, check_dns_subdomain(name))
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += problems_at(f"{path}.key", key, check_config_key(key))
    return errors


def _validate_file_key(reference: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("key", check_env_name), ("volumeName", check_dns_label)):
        if value := reference.get(field, ""):
            errors += problems_at(f"{path}.{field}", value, check(value))
        else:
            errors.append(required(f"{path}.{field}"))
    file = reference.get("path", "")
    if not file:
        errors.append(required(f"{path}.path"))
    elif with_backsteps(file):
        errors.append(bad_value(f"{path}.path", file, "must not contain '..'"))
    return errors


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
        return problems_at(path, key, check_label_key(key))
    if field not in fields:
        return [not_supported(f"{path}.fieldPath", field, fields)]
    return []


def validate_resource_field_ref(reference: Object, path: str, *, needs_container: bool) -> list[FieldError]:
    """A request or limit of a container."""
    resource = reference.get("resource", "")
    errors: list[FieldError] = []
    if needs_container and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGE_FIELDS):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCE_FIELDS))
    divisor = reference.get("divisor", "0")
    if parse_nanos(divisor):
        errors += _validate_divisor(resource, divisor, path)
    return errors


def _validate_divisor(resource: str, divisor: str, path: str) -> list[FieldError]:
    name = resource.partition(".")[2]
    if name == "cpu":
        allowed, words = frozenset({"1", "1m"}), "1m and 1 are supported with the cpu"
    elif name in ("memory", "ephemeral-storage"):
        shown = "memory" if name == "memory" else "local ephemeral storage"
        allowed, words = _SIZE_DIVISORS, f"{_SIZES} are supported with the {shown}"
    elif name.startswith("hugepages-"):
        allowed, words = _SIZE_DIVISORS, f"{_SIZES} are supported with the hugepages"
    else:
        return []
    if divisor in allowed:
        return []
    return [bad_value(f"{path}.divisor", resource, f"only divisor's values {words} resource")]


def validate_env_from(sources: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if prefix := source.get("prefix", ""):
            errors += problems_at(f"{at}.prefix", prefix, check_env_name(prefix))
        named = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in named:
            name = source[kind].get("name", "")
            if not name:
                errors.append(required(f"{at}.{kind}.name"))
            else:
                problems = check_dns_subdomain(name, prefix=True)
                errors += problems_at(f"{at}.{kind}.name", name, problems)
        if not named:
            errors.append(bad_value(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(named) > 1:
            errors.append(bad_value(path, "", "may not have more than one field specified at a time"))
    return errors
