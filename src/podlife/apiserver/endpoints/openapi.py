"""OpenAPI documents, with which clients explain and validate objects.

They are kube-apiserver's, reduced to what is served here (`podlife.api.schema.openapi_documents`). In memory they are
kept compressed, each from its first request on, and are sent so to every client that accepts gzip. They are JSON;
version 2 is also available as protobuf. Any other media type is answered with 406.
"""

from __future__ import annotations

import gzip
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import cache

from podlife.api.codec import decode_object, encode
from podlife.api.schema import openapi_documents
from podlife.apiserver.endpoints import openapi_v2_protobuf
from podlife.errors import NotFoundError
from podlife.wire import Request, Response

_PREFIX = "/openapi/"
_INDEX = "v3"
# Fast, and within a tenth of the smallest.
_GZIP_LEVEL = 6


def answer(request: Request) -> Response:
    """Answer a GET below /openapi. Raises NotFoundError for an unknown document."""
    path = request.path.removeprefix(_PREFIX).rstrip("/")
    headers = {name.lower(): value for name, value in request.headers.items()}
    is_protobuf = path == "v2" and _takes(headers.get("accept", ""), openapi_v2_protobuf.ASKED_FOR)
    if not is_protobuf and not _takes_json(headers.get("accept", "")):
        return Response(406, headers={"Vary": "Accept"})
    if path == _INDEX:
        return Response(body=_index(), headers={"Vary": "Accept"})
    content_hash = openapi_documents.hashes().get(path)
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
        return replace(_sent(_protobuf(), headers, known), content_type=openapi_v2_protobuf.MEDIA_TYPE)
    return _sent(_compressed(path), headers, known)


def _takes_json(accept: str) -> bool:
    return not accept or _takes(accept, ("*/*", "application/*", "application/json"))


def _takes(accept: str, types: Container[str]) -> bool:
    return any(offer.partition(";")[0].strip() in types for offer in accept.split(","))


@cache
def _index() -> bytes:
    paths = {
        path.removeprefix("v3/"): {"serverRelativeURL": f"{_PREFIX}{path}?hash={content_hash}"}
        for path, content_hash in openapi_documents.hashes().items()
        if path.startswith("v3/")
    }
    return encode({"paths": paths})


@cache
def _compressed(path: str) -> bytes:
    """Only called for existing paths, so the cache is bounded by the number of documents."""
    return gzip.compress(openapi_documents.document(path) or b"", _GZIP_LEVEL, mtime=0)


@cache
def _protobuf() -> bytes:
    written = openapi_v2_protobuf.write_document(decode_object(openapi_documents.document("v2") or b"{}"))
    return gzip.compress(written, _GZIP_LEVEL, mtime=0)


def _sent(body: bytes, headers: Mapping[str, str], known: dict[str, str]) -> Response:
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(body=body, headers={**known, "Content-Encoding": "gzip"})
    return Response(body=gzip.decompress(body), headers=known)
