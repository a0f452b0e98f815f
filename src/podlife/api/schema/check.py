"""The gate for objects from outside: one pass in C when all is well, a slow walk when not."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from podlife.api.schema.shapes import fit, shape_of
from podlife.api.schema.table import Type, type_of_kind
from podlife.api.schema.walk import Walk
from podlife.errors import PodlifeError


class DecodeError(PodlifeError, ValueError):
    """The object is not of its kind's shape. The text is upstream's, of the cause alone."""


class UnknownKindError(PodlifeError, ValueError):
    """There is no such kind in the table."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')


_types: dict[tuple[str, str], tuple[Type, type[msgspec.Struct]]] = {}
# msgspec learns a shape when it is first used, and ends the process if two threads do that at once.
_learning = threading.Lock()


def _known(api_version: str, kind: str) -> tuple[Type, type[msgspec.Struct]]:
    with _learning:
        found = type_of_kind(api_version, kind)
        if found is None:
            raise UnknownKindError(api_version, kind)
        shape = shape_of(found)
        fit(shape, {})
        known = _types[api_version, kind] = found, shape
    return known


def check(api_version: str, kind: str, obj: dict[str, Any]) -> list[str]:
    """Make the object what the real server would have read from it, in place, and say which fields were
    unknown (`unknown field "spec.foo"`, in the order in which they came; they are gone).

    The dictionaries inside are new ones: a reference into the object from before the call is stale.
    Raises DecodeError, and UnknownKindError for a kind that is not in the table."""
    kind_type, shape = _types.get((api_version, kind)) or _known(api_version, kind)
    unknown: list[str] = []
    try:
        try:
            fitted = fit(shape, obj)
        except msgspec.ValidationError:
            fitted, unknown = _read_slowly(kind_type, shape, obj)
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    obj.clear()
    obj.update(fitted)
    return unknown


def _read_slowly(
    kind_type: Type, shape: type[msgspec.Struct], obj: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    walk = Walk()
    try:
        read = walk.struct(obj, kind_type)
        if walk.mismatch is not None:
            raise DecodeError(walk.mismatch)
        return fit(shape, read), list(walk.unknown)
    except DecodeError:
        raise
    except ValueError as error:  # msgspec.ValidationError is one: the shape has the last word
        raise DecodeError(str(error)) from None
