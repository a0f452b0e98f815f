"""Requests whose heads and bodies are at their bounds, for every endpoint: long queries and headers, costly patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec

from podlife.api.codec import MOST_VALUES
from tests.fuzz.hostile import MOST_BYTES, Place, body
from tests.fuzz.objects import Seed

_LINE = 60_000
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Asked:
    method: str
    target: str
    data: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.method} {self.target[:120]} {str(self.headers)[:80]} {(self.data or b'')[:60]!r}"


def _queries() -> Iterator[str]:
    yield "labelSelector=" + ",".join(f"!a{n}" for n in range(_LINE // 8))
    yield "labelSelector=" + ",".join("a" for n in range(_LINE // 2))
    yield "labelSelector=" + quote("a in (" + ",".join(f"v{n}" for n in range(_LINE // 8)) + ")", safe=",")
    yield "labelSelector=" + ",".join(f"a!=v{n}" for n in range(_LINE // 9))
    yield "labelSelector=" + quote("(" * (_LINE // 3))
    yield "fieldSelector=" + ",".join(f"metadata.name!=v{n}" for n in range(_LINE // 22))
    yield "fieldSelector=" + quote("\\" * (_LINE // 3))
    yield "fieldSelector=" + "," * _LINE
    yield "continue=" + "A" * _LINE
    yield "resourceVersion=" + "9" * _LINE
    yield "limit=" + "9" * _LINE
    yield "dryRun=All&" * (_LINE // 11)
    yield "&".join("a" for _ in range(_LINE // 2))
    yield "&".join(f"a{n}=b" for n in range(900))
    yield "pretty=" + "1" * _LINE


def _headers() -> Iterator[dict[str, str]]:
    yield {"Accept": ",".join("a/b" for _ in range(_LINE // 4))}
    yield {"Accept": ";".join("a=b" for _ in range(_LINE // 4))}
    yield {"Accept": "application/json;q=" + "0" * _LINE}
    yield {"User_Agent": "x" * _LINE}
    yield {"Impersonate_User": "u" * _LINE}
    yield {"Impersonate_User": "u"} | {f"Impersonate_Extra_{n}": "v" * 500 for n in range(100)}
    yield {f"X_{n}": "v" * 500 for n in range(115)}


def long_heads(seed: Seed) -> Iterator[Asked]:
    """Its collection and an object of it, with every long query and every long header."""
    for target in (seed.collection, f"{seed.collection}/hostile"):
        for query in _queries():
            yield Asked("GET", f"{target}?{query}")
        for headers in _headers():
            yield Asked("GET", target, headers=headers)
    for query in _queries():
        yield Asked("DELETE", f"{seed.collection}?dryRun=All&{query}")
        yield Asked("POST", f"{seed.collection}?{query}", b"{}")


def _operations(many: int) -> Iterator[list[dict[str, Any]]]:
    labels = {"op": "add", "path": "/metadata/labels", "value": {f"k{n}": "v" for n in range(1_000)}}
    doubling = [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/{step}"} for step in range(40)
    ]
    yield [{"op": "add", "path": "/metadata/annotations", "value": {}}, *doubling]
    finalizers = {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"] * (MOST_VALUES // 2)}
    for operation in (
        {"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "move", "from": "/metadata/finalizers/0", "path": "/metadata/finalizers/9"},
        {"op": "copy", "from": "/metadata/finalizers", "path": "/metadata/labels"},
    ):
        yield [finalizers, *([operation] * many)]
    yield [labels, *({"op": "test", "path": "/metadata/labels", "value": {}} for _ in range(many))]
    yield [{"op": "add", "path": "/a" * 5_000, "value": 1}] * 300
    yield [{f"x{n}": 1 for n in range(3_000)}] * 10


def long_patches(path: str) -> Iterator[Asked]:
    """JSON patches, and strategic ones that name one element again and again."""
    for operations in _operations(9_000):
        data = msgspec.json.encode(operations)[:MOST_BYTES]
        yield Asked("PATCH", f"{path}?dryRun=All", data, {"Content_Type": JSON_PATCH})
    variables = [{"name": f"n{number}"} for number in range(10_000)]
    again: list[dict[str, Any]] = [{"name": "main", "env": [{"name": "x"}]}] * (MOST_VALUES // 4)
    for containers in ([{"name": "main", "env": variables}, *again], again):
        data = msgspec.json.encode({"spec": {"containers": containers}})
        yield Asked("PATCH", f"{path}?dryRun=All", data, {"Content_Type": STRATEGIC})
    order = {"$setElementOrder/env": [{"name": f"n{n}"} for n in reversed(range(MOST_VALUES // 3))]}
    data = msgspec.json.encode({"spec": {"containers": [{"name": "main", "env": variables, **order}]}})
    yield Asked("PATCH", f"{path}?dryRun=All", data, {"Content_Type": STRATEGIC})
    duplicated = b'{"metadata":{"annotations":{"%b":[%b],"a":1,"a":2}}}'
    data = duplicated % (b"k" * 1_400_000, b",".join([b"[]"] * (MOST_VALUES - 100)))
    yield Asked("PATCH", f"{path}?dryRun=All", data, {"Content_Type": MERGE})


def patches_of(place: Place) -> Iterator[Asked]:
    """The same long list as a patch of an object that is there."""
    path = f"{place.seed.collection}/hostile?dryRun=All"
    for variant in ("equal", "different"):
        data = body(place, variant)
        for content_type in (STRATEGIC, MERGE):
            yield Asked("PATCH", path, data, {"Content_Type": content_type})
        for subresource in sorted(
            {"status", "finalize", "resize"}.intersection(place.seed.resource.subresources)
        ):
            target = f"{place.seed.collection}/hostile/{subresource}?dryRun=All"
            yield Asked("PUT", target, data)


def large_object_requests(seed: Seed, name: str) -> Iterator[Asked]:
    """Small requests to an object that is as large as one may be."""
    path = f"{seed.collection}/{name}"
    for accept in ("application/json", "application/yaml", TABLE):
        for target in (path, seed.collection):
            yield Asked("GET", target, headers={"Accept": accept})
            yield Asked("GET", f"{target}?pretty=true", headers={"Accept": accept})
    yield Asked("GET", f"{seed.collection}?labelSelector=a%3Db")
    yield Asked("GET", f"{seed.collection}?fieldSelector=metadata.name!%3Db")
    for content_type in (STRATEGIC, MERGE):
        data = b'{"metadata":{"labels":{"a":"b"}}}'
        yield Asked("PATCH", path, data, {"Content_Type": content_type})
        yield Asked("PATCH", path, data, {"Content_Type": content_type, "Accept": "application/yaml"})
    yield Asked("DELETE", f"{path}?dryRun=All")
