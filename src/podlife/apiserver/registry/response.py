"""Responses: stored bytes in the representation that the client asked for.

Most clients want the objects themselves, in JSON: these bytes are sent as they are stored. Tables, partial metadata,
YAML and indented JSON are converted from them on request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.registry.negotiation import JSON, YAML, Representation, negotiate, to_yaml
from podlife.apiserver.registry.object_codec import envelope, list_body, whole
from podlife.apiserver.registry.request_scope import Registry, RequestScope
from podlife.apiserver.registry.table import convert, convert_list, not_a_list
from podlife.apiserver.registry.worker_threads import offload, run_in_thread
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import EventType
from podlife.apiserver.strategies.strategy import MOST_WARNINGS
from podlife.wire import Body, Headers, Response

_PLAIN = Representation()
_YAML_BATCH_BYTES = 64 * 1024
_MOST_WARNING_CHARACTERS = 4 * 1024
_LONGEST_CUT_WARNING = 256
# Above this number of objects or bytes, about ten milliseconds of work, a worker thread converts them. YAML is slowest.
_MADE_AT_ONCE = {JSON: (500, 1024 * 1024), YAML: (50, 32 * 1024)}
# Subresources that upstream does not print.
_WITHOUT_TABLES = ("ephemeralcontainers", "resize")


def representation(
    scope: RequestScope, *, streaming: bool = False, has_tables: bool = True
) -> Representation:
    request = scope.request
    accept = request.headers.get("Accept", "")
    agent = request.headers.get("User-Agent", "")
    is_viewer = agent.startswith(("curl", "Wget", "Moz"))
    if accept in ("", "*/*", JSON) and not request.query.raw and not is_viewer:
        return _PLAIN
    return negotiate(accept, request.query, user_agent=agent, streaming=streaming, has_tables=has_tables)


async def one(scope: RequestScope, value: bytes, *, status: int = 200) -> Response:
    to = representation(scope, has_tables=scope.subresource not in _WITHOUT_TABLES)
    body = whole(scope.resource, value)
    if not to.is_plain:
        now = scope.registry.clock.now().timestamp()
        body = await offload(lambda: to.finish(convert(scope.resource, body, to, now=now)), body)
    return Response(status, body, to.media_type, headers(scope))


def many(scope: RequestScope, values: Sequence[bytes], meta: Object) -> Response:
    to = representation(scope)
    resource = scope.resource
    if to.is_plain and resource.from_stored is None:
        return Response(200, list_body(resource, values, meta), to.media_type, headers(scope))
    now = scope.registry.clock.now().timestamp()

    def make() -> bytes:
        if not to.kind:
            return to.finish(b"".join(list_body(resource, values, meta)))
        objects = [whole(resource, value) for value in values]
        return to.finish(convert_list(resource, objects, meta, to, now=now))

    most, most_bytes = _MADE_AT_ONCE[to.media_type]
    if len(values) <= most and sum(map(len, values)) <= most_bytes:
        body: Body = make()
    elif to.media_type == YAML and not to.kind:
        body = _yaml_list(resource, values, meta)
    else:
        body = _made_aside(make)
    return Response(200, body, to.media_type, headers(scope))


async def _made_aside(make: Callable[[], bytes]) -> AsyncIterator[bytes]:
    """Produce an expensive body in a worker thread."""
    yield await run_in_thread(make)


async def _yaml_list(resource: Resource, values: Sequence[bytes], meta: Object) -> AsyncIterator[bytes]:
    """A list of any length as YAML, a few objects at a time: conversion takes a second per megabyte."""
    yield to_yaml({"apiVersion": resource.api_version}) + b"items:\n"
    for batch in _batches(values):
        yield await run_in_thread(partial(_yaml_items, resource, batch))
    yield to_yaml({"kind": f"{resource.kind}List", "metadata": meta})


def _yaml_items(resource: Resource, values: Sequence[bytes]) -> bytes:
    items = map(decode_object, values)
    return to_yaml(list(items if resource.from_stored is None else map(resource.from_stored, items)))


def _batches(values: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for value in values:
        batch.append(value)
        size += len(value)
        if size > _YAML_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def headers(scope: RequestScope) -> Headers:
    """Response headers: warnings, each once, up to a limit.

    As upstream: if they exceed 4096 characters, each is cut after 256 and no more are sent after that.
    """
    if not scope.warnings:
        return []
    texts = list(dict.fromkeys(scope.warnings))
    sent = texts[:MOST_WARNINGS]
    if sum(map(len, sent)) > _MOST_WARNING_CHARACTERS:
        sent = _cut(sent)
    if len(sent) < len(texts):
        sent.append(f"and {len(texts) - len(sent)} more warnings")
    return [("Warning", f"299 - {_quoted(text)}") for text in sent]


def _cut(texts: list[str]) -> list[str]:
    sent: list[str] = []
    size = 0
    for text in texts:
        if size >= _MOST_WARNING_CHARACTERS:
            break
        sent.append(text[:_LONGEST_CUT_WARNING])
        size += len(sent[-1])
    return sent


def _quoted(text: str) -> str:
    clean = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"') + '"'


class WatchEncoder:
    """Encoding of one watcher's events. Watchers with an equal `key` get the same bytes for an event."""

    def __init__(self, registry: Registry, resource: Resource, to: Representation) -> None:
        self._registry = registry
        self._resource = resource
        self._to = to
        self._has_described_columns = False
        # A table describes its columns in its first event, so no two watchers of tables share bytes.
        self.key: object = object() if to.kind == "Table" else (resource.api_version, resource.key, to)
        self._object = b'","object":' + envelope(resource)

    def frame(self, type_: EventType, value: bytes) -> bytes:
        if not self._to.kind and self._resource.from_stored is None:
            return b'{"type":"%b%b%b}\n' % (type_.encode(), self._object, value[1:])
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), self._convert(whole(self._resource, value)))

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
        meta: Object = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = dict(annotations)
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": meta}
        return b'{"type":"BOOKMARK","object":%b}\n' % self._convert(encode(obj))

    def error(self, status: Object) -> bytes:
        return b'{"type":"ERROR","object":%b}\n' % encode(status)

    def _convert(self, body: bytes) -> bytes:
        if not self._to.kind:
            return body
        now = self._registry.clock.now().timestamp()
        is_first = not self._has_described_columns
        self._has_described_columns = True
        return convert(self._resource, body, self._to, now=now, headers=is_first)


def watch_encoding(scope: RequestScope) -> WatchEncoder:
    """Raise ApiError with 406 if events were requested as lists."""
    to = representation(scope, streaming=True)
    if to.kind == "PartialObjectMetadataList":
        raise not_a_list(scope.resource, to)
    return WatchEncoder(scope.registry, scope.resource, to)
