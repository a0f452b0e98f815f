"""Resource lists: the canonical text of their quantities, and requests where only limits are given.

Quantities are read here for the first time, so a malformed one is refused here, in the words with which the
real server refuses an object it cannot decode.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from podlife.api.codec import Object
from podlife.api.quantity import NANOS, Quantity, canonical_quantity, parse_quantity
from podlife.errors import ApiError
from podlife.memory import CACHED_VALUES

_MILLI = NANOS // 1000


def _read(value: Any) -> str:
    """A quantity may come as a number; its canonical text, or the 400 of an object that cannot be read."""
    try:
        return canonical_quantity(value if isinstance(value, str) else str(value))
    except ValueError as error:
        raise ApiError(str(error), code=400, reason="BadRequest") from None


def canonical(obj: Object, field: str) -> None:
    """Write the quantity in a field, if there is one, as the real server stores it."""
    if (value := obj.get(field)) is not None:
        obj[field] = _read(value)


@lru_cache(maxsize=CACHED_VALUES)
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
    if not resources.get("claims", True):
        del resources["claims"]


def default_requests_from_limits(resources: Object) -> None:
    """A limit without a request is also the request: in pods, not in templates."""
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, value in limits.items():
            requests.setdefault(name, value)
