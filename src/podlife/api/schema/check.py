"""Checks objects from outside: one pass in C for valid ones, a slow walk for the others."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from podlife.api.schema.shapes import fit, shape_of
from podlife.api.schema.table import Type, type_named, type_of_kind
from podlife.api.schema.walk import Walk
from podlife.errors import PodlifeError


class DecodeError(PodlifeError, ValueError):
    """The object does not have the shape of its kind. The text is upstream's, without prefixes."""


class UnknownKindError(PodlifeError, ValueError):
    """The kind is not in the table."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no kind "{kind}" is registered for version "{api_version}"')


_types: dict[tuple[str, str], tuple[Type, type[msgspec.Struct]]] = {}
_METADATA = ("", "ObjectMeta")
# msgspec compiles a shape at its first use, and crashes the process if two threads do that at once.
_learning = threading.Lock()


def _known(api_version: str, kind: str) -> tuple[Type, type[msgspec.Struct]]:
    with _learning:
        is_metadata = (api_version, kind) == _METADATA
        found = type_named("meta.ObjectMeta") if is_metadata else type_of_kind(api_version, kind)
        if found is None:
            raise UnknownKindError(api_version, kind)
        shape = shape_of(found)
        fit(shape, {})
        known = _types[api_version, kind] = found, shape
    return known


def check(api_version: str, kind: str, obj: dict[str, Any]) -> list[str]:
    """Convert the object in place to what kube-apiserver would have decoded, and return the removed unknown fields
    (`unknown field "spec.foo"`) in document order.

    Nested dictionaries are replaced: references into the object from before the call are stale.
    Raises DecodeError, or UnknownKindError for a kind that is not in the table."""
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


def check_metadata(metadata: dict[str, Any]) -> list[str]:
    """As `check`, for the metadata of an object whose kind is not in the table."""
    return check(*_METADATA, metadata)


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
    except ValueError as error:  # includes msgspec.ValidationError
        raise DecodeError(str(error)) from None
