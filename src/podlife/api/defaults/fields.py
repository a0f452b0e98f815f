"""Defaulting of single fields: drops empty ones, fills in others, canonicalizes quantities.

Quantities are parsed here for the first time: a malformed one is rejected like an object that cannot be decoded.
"""

from __future__ import annotations

import re
from typing import Any

from podlife.api.codec import Object
from podlife.api.quantity import NANOS, Quantity, canonical_quantity, parse_quantity
from podlife.errors import ApiError
from podlife.memory import cache_values

_MILLI = NANOS // 1000
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_LONGEST_IMAGE, _LONGEST_NAME = 1024, 255
_image = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
).fullmatch


def drop_empty_parts(value: Any) -> None:
    """Recursively drop empty lists and label maps, as upstream does."""
    if isinstance(value, list):
        for item in value:
            drop_empty_parts(item)
    elif isinstance(value, dict):
        for field in [
            name for name, part in value.items() if part == [] or (name == "matchLabels" and not part)
        ]:
            del value[field]
        for part in value.values():
            drop_empty_parts(part)


def drop_empty(obj: Object, keep: frozenset[str]) -> None:
    """Remove empty fields, except those that are pointers in upstream's types (`keep`)."""
    if all(obj.values()):
        return
    for field in [field for field, value in obj.items() if not value and field not in keep]:
        del obj[field]


def drop_empty_fields(obj: Object, *fields: str) -> None:
    """Remove these fields if they are empty."""
    for field in fields:
        if not obj.get(field, True):
            del obj[field]


def fill_empty(obj: Object, **values: Any) -> None:
    """Set the fields that are absent or empty."""
    for field, value in values.items():
        if not obj.get(field):
            obj[field] = value


def fill_absent(obj: Object, **values: Any) -> None:
    for field, value in values.items():
        obj.setdefault(field, value)


def _read(value: Any) -> str:
    """The canonical text of a quantity, which may be a number; raises 400 as for an object that cannot be decoded."""
    try:
        return canonical_quantity(value if isinstance(value, str) else str(value))
    except ValueError as error:
        raise ApiError(str(error), code=400, reason="BadRequest") from None


def canonical(obj: Object, field: str) -> None:
    """Replace the quantity in a field, if any, by the text that kube-apiserver stores."""
    if (value := obj.get(field)) is not None:
        obj[field] = _read(value)


@cache_values
def _in_millis(text: str) -> str:
    quantity = parse_quantity(text)
    if quantity.nanos % _MILLI == 0:
        return text
    return str(Quantity(-(-quantity.nanos // _MILLI) * _MILLI, quantity.style))


def default_resource_list(amounts: Object) -> None:
    """Canonical, and rounded up to thousandths."""
    for name, value in amounts.items():
        amounts[name] = _in_millis(_read(value))


def default_resource_lists(resources: Object) -> None:
    """`requests` and `limits` of any resource requirements."""
    for side in ("limits", "requests"):
        if amounts := resources.get(side):
            default_resource_list(amounts)
        elif amounts is not None:
            del resources[side]
    drop_empty_fields(resources, "claims")


def default_requests_from_limits(resources: Object) -> None:
    """A limit without a request is also the request, in pods but not in templates."""
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, value in limits.items():
            requests.setdefault(name, value)


def pull_policy(image: str) -> str:
    """Always for mutable references: `latest`, or neither tag nor digest."""
    return _pull_policy(image) if len(image) <= _LONGEST_IMAGE else "IfNotPresent"


@cache_values
def _pull_policy(image: str) -> str:
    match = _image(image)
    if match is None or len(match["name"]) > _LONGEST_NAME:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
