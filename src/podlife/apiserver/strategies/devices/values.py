"""Lists, maps and names of the kinds of resource.k8s.io."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, required, too_long, too_many
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.field_checks import check_at, driver_name, unique

T = TypeVar("T")
Check = Callable[[T, str], Iterable[FieldError]]
RequestNames = Mapping[str, frozenset[str]]
"""The requests of a claim, and the alternatives that each of them lists."""

MOST_REQUESTS = MOST_CONFIGURATIONS = 32
TAINT_EFFECTS = frozenset({"NoExecute", "NoSchedule", "None"})
_is_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII).fullmatch
_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)


def validate_list(
    items: Sequence[T] | None,
    path: str,
    check: Check[T],
    most: int | None = None,
    key: Callable[[T], Hashable] | None = None,
) -> FieldErrors:
    """Too many items are not looked at. With a `key`, no two items may have the same."""
    items = items or ()
    if most is not None and len(items) > most:
        yield too_many(path, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
    if key is not None:
        seen: set[Hashable] = set()
        for index, item in enumerate(items):
            yield from unique(f"{path}[{index}]", key(item), seen)


def validate_map(
    items: Mapping[str, Any] | None, path: str, check_key: Check[str], check: Check[Any], longest_key: int
) -> FieldErrors:
    """Errors in keys are reported at the map, those in values at the key, which is shortened if it is long."""
    for key, item in (items or {}).items():
        yield from check_key(key, path)
        left = longest_key - 3
        short = f"{key[: (left + 1) // 2]}...{key[len(key) - left // 2 :]}"
        yield from check(item, f"{path}[{short if len(key) > longest_key else key}]")


def at_most(longest: int, text: str, path: str) -> list[FieldError]:
    return [too_long(path, longest)] if len(text.encode()) > longest else []


def label_key(key: str, path: str) -> list[FieldError]:
    return check_at(path, key, check_label_key)


def dns_label(name: str, path: str) -> list[FieldError]:
    return check_at(path, name, check_dns_label)


def validate_pool_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    yield from at_most(253, name, path)
    for part in name.split("/"):
        yield from check_at(path, part, check_dns_subdomain)


def validate_qualified_name(name: str, path: str) -> FieldErrors:
    """An identifier, with or without a domain. Upstream does not look at names with several slashes."""
    match name.split("/"):
        case [identifier]:
            yield from _validate_identifier(identifier, path)
        case [domain, identifier]:
            empty = "the domain must not be empty"
            yield from driver_name(path, domain) if domain else [bad_value(path, "", empty)]
            empty = "the name must not be empty"
            yield from _validate_identifier(identifier, path) if identifier else [bad_value(path, "", empty)]


def _validate_identifier(identifier: str, path: str) -> FieldErrors:
    yield from at_most(32, identifier, path)
    if not _is_identifier(identifier):
        yield bad_value(path, identifier, _IDENTIFIER_RULE)


def validate_binding_conditions(holder: Object, path: str) -> FieldErrors:
    """What must be true of a device, or must not, before pods are bound: both or none."""
    fields = ("bindingConditions", "bindingFailureConditions")
    wanted, failures = (holder.get(field) or [] for field in fields)
    for field in fields:
        yield from validate_list(holder.get(field), f"{path}.{field}", label_key, 4)
    seen: set[str] = set()
    for index, condition in enumerate(wanted):
        yield from unique(f"{path}.{fields[0]}[{index}]", condition, seen)
    failed: set[str] = set()
    for index, condition in enumerate(failures):
        at = f"{path}.{fields[1]}[{index}]"
        yield from unique(at, condition, failed)
        if condition in seen:
            yield bad_value(at, condition, f"{fields[1]} must not overlap with {fields[0]}")
    for missing, other in (fields, fields[::-1]):
        if not holder.get(missing) and holder.get(other):
            yield bad_value(f"{path}.{missing}", None, f"{missing} are required to use {other}")


def request_names(spec: Object) -> RequestNames:
    return {
        request["name"]: frozenset(each["name"] for each in request.get("firstAvailable") or ())
        for request in spec["devices"].get("requests") or ()
    }


def validate_reference(known: RequestNames, name: str, path: str) -> FieldErrors:
    """The name of a request, or of one of its alternatives after a slash."""
    parts = name.split("/")
    for part in parts if len(parts) <= 2 else ():
        yield from dns_label(part, path)
    request, *alternative = parts
    if len(parts) > 2 or request not in known or not known[request].issuperset(alternative):
        detail = "must be the name of a request in the claim or the name of a request and a subrequest"
        yield bad_value(path, name, f"{detail} separated by '/'")


def validate_references(known: RequestNames, holder: Object, path: str) -> FieldErrors:
    """The requests that a constraint or a configuration is for; all if it names none."""
    check = partial(validate_reference, known)
    return validate_list(holder.get("requests"), f"{path}.requests", check, MOST_REQUESTS, str)
