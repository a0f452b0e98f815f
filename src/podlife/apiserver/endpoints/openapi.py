"""OpenAPI documents, with which clients explain and validate objects.

They are kube-apiserver's, reduced to the served resources (`podlife.api.schema.openapi_documents`), and those of custom
resources (`apiextensions.openapi`). Each is compressed at its first request, kept in memory, and sent compressed to
clients that accept gzip. They are JSON; version 2 is also available as protobuf, with which kubectl validates a
`kind: List` on the client side. Any other media type gets 406.

The protobuf message contains the definitions, which is what clients read; paths are in the JSON only. Field numbers are
those of gnostic's OpenAPIv2.proto. Other parts of a schema become extensions or are left out: `enum` and `default` are
checked by the server.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from podlife.api.codec import decode_object, encode
from podlife.api.schema import openapi_documents
from podlife.apiserver.apiextensions import openapi as custom_resources
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.registry.worker_threads import run_in_thread
from podlife.apiserver.resource import Resource
from podlife.errors import NotFoundError
from podlife.wire import Request, Response

_PREFIX = "/openapi/"
_INDEX = "v3"
# Fast, and within 10 % of the best compression.
_GZIP_LEVEL = 6

_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# kubectl requests it by a name that is not a media type; the response must not repeat it.
_PROTOBUF_TYPES = frozenset({_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})

# Document, Info
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_TITLE, _VERSION = 1, 2
# Schema
_TEXTS = {"$ref": 1, "format": 2, "description": 4}
_REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 19, 21, 22, 23, 25, 31
# An entry of a map, and fields that occur once.
_NAME, _VALUE, _ONLY = 1, 2, 1
_YAML = 2


async def answer(request: Request, catalog: ResourceCatalog) -> Response:
    """Answer a GET below /openapi. Raises NotFoundError for an unknown document."""
    path = request.path.removeprefix(_PREFIX).rstrip("/")
    headers = {name.lower(): value for name, value in request.headers.items()}
    accept = headers.get("accept", "")
    is_protobuf = path == "v2" and _takes(accept, _PROTOBUF_TYPES)
    if not is_protobuf and accept and not _takes(accept, ("*/*", "application/*", "application/json")):
        return Response(406, headers={"Vary": "Accept"})
    if path == _INDEX:
        return Response(body=catalog.kept("openapi", lambda: _index(catalog)), headers={"Vary": "Accept"})
    content_hash = _hashes(catalog).get(path)
    if content_hash is None:
        raise NotFoundError("the server could not find the requested resource")
    asked_hash = request.query.get("hash")
    tag = f'"{content_hash}"'
    if path != "v2" and asked_hash and asked_hash != content_hash:
        location = f"{_PREFIX}{path}?hash={content_hash}"
        return Response(301, headers={"ETag": tag, "Location": location, "Vary": "Accept"})
    known = {"ETag": tag, "Vary": "Accept, Accept-Encoding"}
    if asked_hash:
        # The URL contains the content's hash, so the document never changes.
        known["Cache-Control"] = "public, immutable"
    if headers.get("if-none-match") == tag:
        return Response(304, headers=known)
    if is_protobuf:
        compressed = await _compressed(catalog, f"{path} as protobuf")
        return replace(_sent(compressed, headers, known), content_type=_PROTOBUF)
    return _sent(await _compressed(catalog, path), headers, known)


def _takes(accept: str, types: Container[str]) -> bool:
    return any(offer.partition(";")[0].strip() in types for offer in accept.split(","))


def _custom(catalog: ResourceCatalog) -> dict[str, list[Resource]]:
    """Rows of custom resources, by the document that they are in."""
    found: dict[str, list[Resource]] = {}
    for row in catalog.rows:
        if row.custom is not None:
            found.setdefault(custom_resources.path_of(row), []).append(row)
    return found


def _hashes(catalog: ResourceCatalog) -> dict[str, str]:
    return catalog.kept("openapi hashes", lambda: _new_hashes(catalog))


def _new_hashes(catalog: ResourceCatalog) -> dict[str, str]:
    built_in = openapi_documents.hashes()
    custom = {path: custom_resources.hash_of(rows) for path, rows in _custom(catalog).items()}
    if custom:
        # The one document of version 2 has everything.
        everything = "".join([built_in["v2"], *custom.values()])
        custom["v2"] = hashlib.sha512(everything.encode()).hexdigest().upper()
    return {**custom, **built_in, **({"v2": custom["v2"]} if custom else {})}


def _index(catalog: ResourceCatalog) -> bytes:
    paths = {
        path.removeprefix("v3/"): {"serverRelativeURL": f"{_PREFIX}{path}?hash={content_hash}"}
        for path, content_hash in sorted(_hashes(catalog).items())
        if path.startswith("v3/")
    }
    return encode({"paths": paths})


async def _compressed(catalog: ResourceCatalog, path: str) -> bytes:
    """A document, compressed. Those with custom resources are made in a thread, again after each change of them."""
    rows = _custom(catalog)
    name, _, is_protobuf = path.partition(" ")
    if not rows or (name != "v2" and name in openapi_documents.hashes()):
        return _built_in(path)
    # Not of the catalog, should it change meanwhile.
    documents = catalog.documents
    if path not in documents:
        documents[path] = await run_in_thread(lambda: _made(name, rows, is_protobuf=bool(is_protobuf)))
    compressed: bytes = documents[path]
    return compressed


def _made(name: str, rows: dict[str, list[Resource]], *, is_protobuf: bool) -> bytes:
    if name == "v2":
        body = custom_resources.document_v2(row for group in rows.values() for row in group)
    else:
        body = custom_resources.document_v3(rows[name])
    return gzip.compress(_write_document(decode_object(body)) if is_protobuf else body, _GZIP_LEVEL, mtime=0)


@cache
def _built_in(path: str) -> bytes:
    """Only called for existing paths, so the cache is bounded by the number of documents."""
    name, _, is_protobuf = path.partition(" ")
    body = openapi_documents.document(name) or b"{}"
    return gzip.compress(_write_document(decode_object(body)) if is_protobuf else body, _GZIP_LEVEL, mtime=0)


def _sent(body: bytes, headers: Mapping[str, str], known: dict[str, str]) -> Response:
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(body=body, headers={**known, "Content-Encoding": "gzip"})
    return Response(body=gzip.decompress(body), headers=known)


def _write_document(document: Mapping[str, Any]) -> bytes:
    info = _text(_TITLE, document["info"]["title"]) + _text(_VERSION, document["info"]["version"])
    return (
        _text(_SWAGGER, document["swagger"])
        + _part(_INFO, info)
        + _part(_PATHS, b"")
        + _part(_DEFINITIONS, _schemas(document["definitions"]))
    )


def _schemas(schemas: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"".join(_part(_ONLY, _named(name, _schema(schema))) for name, schema in schemas.items())


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts = [_text(number, schema[key]) for key, number in _TEXTS.items() if key in schema]
    parts += [_text(_REQUIRED, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        parts.append(_part(_ADDITIONAL, _part(_ONLY, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_part(_TYPE, _text(_ONLY, schema["type"])))
    if "items" in schema:
        parts.append(_part(_ITEMS, _part(_ONLY, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_part(_PROPERTIES, _schemas(schema["properties"])))
    for key, value in schema.items():
        if key.startswith("x-"):
            # Parsed as YAML, of which JSON is a subset.
            parts.append(_part(_EXTENSION, _named(key, _part(_YAML, encode(value)))))
    return b"".join(parts)


def _named(name: str, value: bytes) -> bytes:
    return _text(_NAME, name) + _part(_VALUE, value)


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _part(number: int, value: bytes) -> bytes:
    """A bytes field, which also holds text and messages."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
