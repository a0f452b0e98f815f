"""Names of pools, attributes and requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from podlife.api.codec import Object
from podlife.api.field_errors import FieldErrors, bad_value, required, too_long
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.apiserver.strategies.devices.lists import validate_list
from podlife.apiserver.strategies.field_checks import check_at, driver_name

RequestNames = Mapping[str, frozenset[str]]
"""The requests of a claim, and the alternatives that each of them lists."""

MOST_REQUESTS = 32
TAINT_EFFECTS = frozenset({"NoExecute", "NoSchedule", "None"})
_LONGEST_POOL = 253
_LONGEST_ID = 32
_is_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII).fullmatch
_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)


def validate_pool_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _LONGEST_POOL:
        yield too_long(path, _LONGEST_POOL)
    for part in name.split("/"):
        yield from check_at(path, part, check_dns_subdomain)


def validate_qualified_name(name: str, path: str) -> FieldErrors:
    """An identifier, with or without a domain. Upstream does not look at names with several slashes."""
    match name.split("/"):
        case [identifier]:
            yield from _validate_identifier(identifier, path)
        case [domain, identifier]:
            if domain:
                yield from driver_name(path, domain)
            else:
                yield bad_value(path, "", "the domain must not be empty")
            if identifier:
                yield from _validate_identifier(identifier, path)
            else:
                yield bad_value(path, "", "the name must not be empty")


def _validate_identifier(identifier: str, path: str) -> FieldErrors:
    if len(identifier.encode()) > _LONGEST_ID:
        yield too_long(path, _LONGEST_ID)
    if not _is_identifier(identifier):
        yield bad_value(path, identifier, _IDENTIFIER_RULE)


def request_names(spec: Object) -> RequestNames:
    requests = spec["devices"].get("requests") or ()
    return {
        request["name"]: frozenset(each["name"] for each in request.get("firstAvailable") or ())
        for request in requests
    }


def validate_reference(known: RequestNames, name: str, path: str) -> FieldErrors:
    """The name of a request, or of one of its alternatives after a slash."""
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            yield from check_at(path, part, check_dns_label)
    request, *alternative = parts
    if len(parts) > 2 or request not in known or not known[request].issuperset(alternative):
        detail = "must be the name of a request in the claim or the name of a request and a subrequest"
        yield bad_value(path, name, f"{detail} separated by '/'")


def validate_references(known: RequestNames, holder: Object, path: str) -> FieldErrors:
    """The requests that a constraint or a configuration is for; all if it names none."""
    check = partial(validate_reference, known)
    return validate_list(holder.get("requests") or (), f"{path}.requests", check, most=MOST_REQUESTS, key=str)
