"""Other representations of objects: server-side tables (what `kubectl get` shows) and partial metadata.

Objects come in as stored bytes, responses go out as bytes. The resource's printer computes a row's cells; the rest of
an object is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.printers import PLAIN
from podlife.apiserver.registry.negotiation import Representation
from podlife.apiserver.resource import Column, Printer, Resource
from podlife.errors import ApiError


class _WithMetadata(msgspec.Struct):
    # Left encoded: it is sent exactly as it is stored.
    metadata: msgspec.Raw


_metadata_decoder = msgspec.json.Decoder(_WithMetadata)


def convert(
    resource: Resource, value: bytes, to: Representation, *, now: float, headers: bool = True
) -> bytes:
    """Convert one object as requested: the answer to a get, or the object of a watch event.

    A watch describes its table's columns once: `headers` is set for its first event only. Raises ApiError with 406 if
    a list of metadata was requested.
    """
    if not to.kind:
        return value
    if to.kind == "PartialObjectMetadataList":
        raise not_a_list(resource, to)
    if to.kind == "PartialObjectMetadata":
        return encode(_partial(value, to))
    obj = decode_object(value)
    metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
    return _table(resource, [(obj, value)], metadata, to, now=now, headers=headers)


def convert_list(
    resource: Resource, values: Iterable[bytes], metadata: Object, to: Representation, *, now: float
) -> bytes:
    """Convert a list to a table or to partial metadata; `metadata` is the list's own.

    Raises ApiError with 406 if the metadata of one object was requested.
    """
    if to.kind == "PartialObjectMetadata":
        raise _mismatch(
            f"you requested {to.kind}, but the requested object is a list (*{resource.list_kind})"
        )
    if to.kind == "PartialObjectMetadataList":
        items = [_partial(value, to) for value in values]
        # kube-apiserver sends null for none, and clients expect it.
        return encode(
            {"kind": to.kind, "apiVersion": to.api_version, "metadata": metadata, "items": items or None}
        )
    pairs = ((decode_object(value), value) for value in values)
    return _table(resource, pairs, metadata, to, now=now, headers=True)


def not_a_list(resource: Resource, to: Representation) -> ApiError:
    return _mismatch(f"you requested {to.kind}, but the requested object is not a list (*{resource.kind})")


def _mismatch(message: str) -> ApiError:
    return ApiError(message, code=406, reason="NotAcceptable")


def _partial(value: bytes, to: Representation) -> Object:
    metadata = _metadata_decoder.decode(value).metadata
    return {"kind": "PartialObjectMetadata", "apiVersion": to.api_version, "metadata": metadata}


def _table(
    resource: Resource,
    objects: Iterable[tuple[Object, bytes]],
    metadata: Object,
    to: Representation,
    *,
    now: float,
    headers: bool,
) -> bytes:
    printer = resource.printer or PLAIN
    return encode(
        {
            "kind": "Table",
            "apiVersion": to.api_version,
            "metadata": metadata,
            "columnDefinitions": _column_definitions(printer.columns) if headers else None,
            "rows": [_row(printer, obj, value, to, now) for obj, value in objects],
        }
    )


def _row(printer: Printer, obj: Object, value: bytes, to: Representation, now: float) -> Object:
    row: Object = {"cells": printer.cells(obj, now)}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        row["conditions"] = conditions
    row["object"] = _row_object(obj, value, to)
    return row


def _row_object(obj: Object, value: bytes, to: Representation) -> Object | msgspec.Raw | None:
    if to.include_object == "None":
        return None
    if to.include_object == "Object":
        return msgspec.Raw(value)
    return {"kind": "PartialObjectMetadata", "apiVersion": to.api_version, "metadata": obj["metadata"]}


@lru_cache(maxsize=1024)
def _column_definitions(columns: tuple[Column, ...]) -> msgspec.Raw:
    # In upstream's order.
    fields = ("name", "type", "format", "description", "priority")
    shown = [{field: getattr(column, field) for field in fields} for column in columns]
    return msgspec.Raw(encode(shown))
