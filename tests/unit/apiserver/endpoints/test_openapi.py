import asyncio
import gzip
import json
from typing import Any

import pytest

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import openapi
from podlife.apiserver.resource_table import RESOURCES
from podlife.errors import NotFoundError
from podlife.wire import Query, Request, Response

CATALOG = ResourceCatalog()


def get(path: str, query: str = "", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(openapi.answer(Request("GET", path, Query(query), named), CATALOG))


def body_of(answer: Response) -> bytes:
    assert isinstance(answer.body, bytes)
    return answer.body


def header(answer: Response, name: str) -> str:
    return dict(answer.headers)[name]


def document(path: str) -> Any:
    return json.loads(body_of(get(path)))


def address(group: str) -> str:
    return str(document("/openapi/v3")["paths"][group]["serverRelativeURL"])


def test_the_index_leads_to_a_document_for_every_group_that_is_served() -> None:
    for group in {f"apis/{row.group}/{row.version}" if row.group else "api/v1" for row in RESOURCES}:
        path, _, query = address(group).partition("?")
        answer = get(path, query)
        assert json.loads(body_of(answer))["openapi"].startswith("3.")
        assert header(answer, "Cache-Control") == "public, immutable"


def test_a_client_that_takes_gzip_gets_the_same_document_compressed() -> None:
    plain = get("/openapi/v3/apis/apps/v1").body
    packed = get("/openapi/v3/apis/apps/v1", Accept_Encoding="gzip, deflate")
    assert header(packed, "Content-Encoding") == "gzip"
    assert gzip.decompress(body_of(packed)) == plain


def test_a_client_that_has_the_document_is_told_so() -> None:
    tag = header(get("/openapi/v3/api/v1"), "ETag")
    assert get("/openapi/v3/api/v1", If_None_Match=tag).status == 304
    assert get("/openapi/v3/api/v1", If_None_Match='"other"').status == 200


def test_an_old_hash_leads_to_the_new_address() -> None:
    answer = get("/openapi/v3/api/v1", "hash=OLD")
    assert answer.status == 301
    assert header(answer, "Location") == address("api/v1")


@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v3/api/v1"])
def test_of_version_3_only_json_is_spoken(path: str) -> None:
    proto = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
    assert get(path, Accept=proto).status == 406
    assert get(path, Accept=f"{proto};q=1, application/json;q=0.5").status == 200
    assert get(path, Accept="*/*").status == 200


def test_a_document_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        get("/openapi/v3/apis/example.com/v1")


def test_what_is_not_served_is_not_described() -> None:
    core = document("/openapi/v3/api/v1")
    assert "/api/v1/namespaces/{namespace}/pods/{name}/eviction" in core["paths"]
    assert not [path for path in core["paths"] if "componentstatuses" in path or "/watch/" in path]
    assert "io.k8s.api.core.v1.ComponentStatus" not in core["components"]["schemas"]


def test_every_reference_in_a_document_is_answered_in_it() -> None:
    for path in ("/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/batch/v1"):
        body, found = body_of(get(path)), document(path)
        schemas = found.get("definitions") or found["components"]["schemas"]
        prefix = b'"$ref":"#/definitions/' if path.endswith("v2") else b'"$ref":"#/components/schemas/'
        used = {piece.partition(b'"')[0].decode() for piece in body.split(prefix)[1:]}
        assert used == used & schemas.keys()


def test_every_patch_and_create_takes_field_validation() -> None:
    """kubectl looks for the parameter before it leaves validation to the server."""
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    item = document("/openapi/v3/apis/apps/v1")["paths"][path]
    assert "fieldValidation" in {parameter["name"] for parameter in item["patch"]["parameters"]}


@pytest.mark.parametrize("sign", [".", "@"])
def test_version_2_is_protobuf_for_who_insists_on_it(sign: str) -> None:
    proto = f"application/com.github.proto-openapi.spec.v2{sign}v1.0+protobuf"
    answer = get("/openapi/v2", Accept=proto)
    assert (answer.status, answer.content_type) == (
        200,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    )
    message = dict(read(body_of(answer)))
    assert message[1] == b"2.0"
    named = [dict(read(entry)) for _, entry in read(message[9])]
    schemas = {entry[1].decode(): dict(read(entry[2])) for entry in named}
    assert list(schemas) == list(document("/openapi/v2")["definitions"])
    config_map = schemas["io.k8s.api.core.v1.ConfigMap"]
    fields = {dict(read(entry))[1] for _, entry in read(config_map[25])}
    assert fields == {b"apiVersion", b"binaryData", b"data", b"immutable", b"kind", b"metadata"}
    extension = dict(read(config_map[31]))
    assert extension[1] == b"x-kubernetes-group-version-kind"
    assert json.loads(dict(read(extension[2]))[2]) == [{"group": "", "kind": "ConfigMap", "version": "v1"}]


def read(message: bytes) -> list[tuple[int, bytes]]:
    """The fields of a message all of which are bytes."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 == 2
        size = varint()
        found.append((tag >> 3, message[at : at + size]))
        at += size
    assert at == len(message)
    return found
