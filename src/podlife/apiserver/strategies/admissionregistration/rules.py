"""Rules of webhooks and admission policies: which requests they are about. Checks are in upstream's words and order."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")


def validate_rule(
    rule: Object, path: str, *, operations: Sequence[str] = OPERATIONS, has_subresources: bool = True
) -> FieldErrors:
    given: list[str] = rule.get("operations") or []
    yield from _wildcard_alone(given, f"{path}.operations", "operations")
    for index, operation in enumerate(given):
        if operation not in operations:
            yield not_supported(f"{path}.operations[{index}]", operation, operations)
    yield from _wildcard_alone(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions: list[str] = rule.get("apiVersions") or []
    yield from _wildcard_alone(versions, f"{path}.apiVersions", "API versions")
    yield from (required(f"{path}.apiVersions[{index}]") for index, each in enumerate(versions) if not each)
    resources: list[str] = rule.get("resources") or []
    check = _validate_resources if has_subresources else _validate_whole_resources
    yield from check(resources, f"{path}.resources")
    if (scope := rule.get("scope")) is not None and scope not in _SCOPES:
        yield not_supported(f"{path}.scope", scope, _SCOPES)


def _wildcard_alone(values: Sequence[str], path: str, what: str) -> FieldErrors:
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield bad_value(path, list(values), f"if '*' is present, must not specify other {what}")


def _validate_whole_resources(resources: Sequence[str], path: str) -> FieldErrors:
    if not resources:
        yield required(path)
    for index, resource in enumerate(resources):
        if not resource:
            yield required(f"{path}[{index}]")
        if "/" in resource:
            yield bad_value(f"{path}[{index}]", resource, "must not specify subresources")
    if len(resources) > 1 and "*" in resources:
        yield bad_value(path, list(resources), "if '*' is present, must not specify other resources")


def _validate_resources(resources: Sequence[str], path: str) -> FieldErrors:
    if not resources:
        yield required(path)
    # Resources whose subresources are all meant (`x/*`), and subresources that are meant of every resource (`*/x`).
    of_resource: set[str] = set()
    of_all: set[str] = set()
    is_last_whole = False
    for index, given in enumerate(resources):
        if not given:
            yield required(f"{path}[{index}]")
            continue
        resource, slash, subresource = given.partition("/")
        if not slash:
            # As upstream: only the last one counts.
            is_last_whole = given != "*"
            continue
        yield from _redundant(given, resource, subresource, of_resource, of_all, f"{path}[{index}]")
        if subresource == "*":
            of_resource.add(resource)
        if resource == "*":
            of_all.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield bad_value(path, list(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and is_last_whole:
        text = "if '*' is present, must not specify other resources without subresources"
        yield bad_value(path, list(resources), text)


def _redundant(
    given: str, resource: str, subresource: str, of_resource: set[str], of_all: set[str], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    if resource in of_resource:
        errors.append(bad_value(path, given, f"if '{resource}/*' is present, must not specify {given}"))
    if subresource in of_all:
        errors.append(bad_value(path, given, f"if '*/{subresource}' is present, must not specify {given}"))
    return errors
