from __future__ import annotations

import pytest

from podlife.apiserver.registry.negotiation import JSON, YAML, Representation, negotiate
from podlife.errors import ApiError
from podlife.wire import Query

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
# What kubectl get sends.
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Representation()),
        ("*/*", Representation()),
        ("*", Representation()),
        ("application/*", Representation()),
        (JSON, Representation()),
        ("application/json, */*", Representation()),
        (f"{PROTOBUF},{JSON}", Representation()),
        (f"{PROTOBUF}, */*;q=0.1", Representation()),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Representation()),
        (YAML, Representation(YAML)),
        ("application/json;q=0.5,application/yaml", Representation(YAML)),
        ("application/json;q=0.5,application/yaml;q=0.4", Representation()),
        (KUBECTL, Representation(kind="Table")),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            Representation(kind="Table", version="v1beta1"),
        ),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", Representation(YAML, kind="Table")),
        ("application/json;g=meta.k8s.io; v=v1; as=Table", Representation(kind="Table")),
        (
            f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,{PARTIAL}",
            Representation(kind="PartialObjectMetadata"),
        ),
        (
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Representation(kind="PartialObjectMetadataList"),
        ),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Representation()),
        ("application/json;stream=watch", Representation()),
        ("application/json;pretty=1", Representation(pretty=True)),
        ("nonsense, application/json", Representation()),
        ("application/json;charset=utf-8", Representation()),
    ],
)
def test_accept_header_chooses(accept: str, expected: Representation) -> None:
    assert negotiate(accept) == expected


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "nonsense",
        PROTOBUF,
        "application/json;as=Table",
        "application/json;as=Status;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v3;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=apps",
        "application/json;stream=other",
        "application/json;sv=v2",
        "*/yaml",
    ],
)
def test_nothing_acceptable_is_refused_with_what_is_offered(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        negotiate(accept)
    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")
    assert refused.value.message == (
        "only the following media types are accepted: application/json, application/yaml"
    )


def test_watch_cannot_be_yaml() -> None:
    with pytest.raises(ApiError, match=r"accepted: application/json;stream=watch$"):
        negotiate(YAML, streaming=True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", "Metadata"), ("includeObject=None", "None"), ("includeObject=Object", "Object")],
)
def test_rows_of_a_table_carry_what_the_query_says(query: str, expected: str) -> None:
    assert negotiate(TABLE, Query(query)).include_object == expected


def test_unknown_include_object_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as refused:
        negotiate(TABLE, Query("includeObject=Foo"))
    assert refused.value.code == 400
    assert refused.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Foo": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_include_object_means_nothing_without_a_table() -> None:
    assert negotiate(JSON, Query("includeObject=Foo")) == Representation()


@pytest.mark.parametrize(
    ("query", "user_agent", "pretty"),
    [
        ("", "kubectl/v1.36", False),
        ("", "curl/8", True),
        ("pretty=true", "kubectl/v1.36", True),
        ("pretty=false", "curl/8", False),
        ("pretty=maybe", "curl/8", False),
    ],
)
def test_people_get_indented_json(query: str, user_agent: str, *, pretty: bool) -> None:
    assert negotiate(JSON, Query(query), user_agent=user_agent).pretty is pretty


def test_frames_of_a_watch_are_never_indented() -> None:
    assert not negotiate(JSON, Query("pretty=1"), user_agent="curl/8", streaming=True).pretty


def test_body_is_finished_in_the_form_asked_for() -> None:
    body = '{"b":{"x":null,"y":"on"},"a":["ä",1]}'.encode()
    assert Representation().finish(body) is body
    assert Representation(YAML).finish(body).decode() == "a:\n- ä\n- 1\nb:\n  x: null\n  y: 'on'\n"
    assert Representation(pretty=True).finish(b'{"a":1}') == b'{\n  "a": 1\n}'


@pytest.mark.parametrize("accept", [TABLE, PARTIAL])
def test_a_document_that_is_not_an_object_has_no_other_form(accept: str) -> None:
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiate(accept, has_tables=False, has_metadata=False)
    plain = negotiate(f"{accept},{JSON}", has_tables=False, has_metadata=False)
    assert plain == Representation()
