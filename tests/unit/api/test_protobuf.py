"""Protobuf bodies: what a Go client sends, and what it must never be able to do to the server."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api import protobuf
from tests.kit.protobuf import envelope, message, varint


def test_delete_options_with_a_negative_grace_and_a_precondition() -> None:
    body = message((1, -1), (2, message((1, "uid-1"))), (5, "All"))
    assert protobuf.decode(envelope("v1", "DeleteOptions", body)) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": -1,
        "preconditions": {"uid": "uid-1"},
        "dryRun": ["All"],
    }


def test_maps_bytes_and_times() -> None:
    meta = message((1, "s"), (8, message((1, 1893553445), (2, 5))), (11, message((1, "k"), (2, "v"))))
    body = message((1, meta), (2, message((1, "key"), (2, b"\x00\xff"))))
    read = protobuf.decode(envelope("v1", "Secret", body))
    assert read["data"] == {"key": "AP8="}
    assert read["metadata"] == {
        "name": "s",
        "creationTimestamp": "2030-01-02T03:04:05Z",
        "labels": {"k": "v"},
    }


def test_an_embedded_struct_is_part_of_its_object() -> None:
    volume = message((1, "data"), (2, message((2, message()))))
    pod = message((2, message((1, volume))))
    assert protobuf.decode(envelope("v1", "Pod", pod))["spec"]["volumes"] == [
        {"name": "data", "emptyDir": {}}
    ]


def test_a_number_nobody_knows_is_passed_over() -> None:
    assert "spec" not in protobuf.decode(envelope("v1", "Pod", message((99, "x"), (98, 7))))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "expected prefix"),
        (b'{"kind":"Pod"}', "expected prefix"),
        (envelope("v1", "Nothing", b""), "no kind"),
        (envelope("v1", "Pod", b"\x0a\x7f"), "unexpected end"),
        (envelope("v1", "Pod", b"\x0b"), "wire type"),
        (envelope("v1", "Pod", b"\xff" * 20), "too long"),
        (envelope("v1", "Pod", message((1, 5))), "message was expected"),
        (envelope("v1", "Pod", message((1, message((1, b"\xff\xfe"))))), "broken"),
    ],
)
def test_a_broken_message_is_one_clear_error(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        protobuf.decode(data)


@given(st.sampled_from(["Pod", "Secret", "Event", "Node"]), st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(kind: str, body: bytes) -> None:
    try:
        read = protobuf.decode(envelope("v1", kind, body))
    except ValueError:
        return
    assert read["kind"] == kind


def test_json_inside_a_message_may_not_be_nested_without_end() -> None:
    body = message((2, message((1, "[" * 100_000))))
    with pytest.raises(ValueError, match="nested too deeply"):
        protobuf.decode(envelope("apps/v1", "ControllerRevision", body))


def definition(props: bytes) -> bytes:
    version = message((1, "v1"), (2, 1), (3, 1), (4, message((1, props))))
    spec = message((1, "example.com"), (7, version))
    return envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message((2, spec)))


def schema_in(data: bytes) -> object:
    return protobuf.decode(data)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def test_schema_of_a_definition_is_read_as_its_json() -> None:
    text = message((1, ""), (5, "string"), (8, message((1, '"x"'))), (20, message((1, "null"))), (13, 3))
    number = message((5, "number")) + double(9, 5.0) + double(11, -0.5)
    props = message(
        (5, "object"),
        (24, message((1, text))),
        (25, message((23, "a"), (23, "b"))),
        (29, message((1, "text"), (2, text))),
        (29, message((1, "number"), (2, number))),
        (30, message((1, 1), (2, text))),
        (33, message((1, 0))),
        (32, message((1, "list"), (2, message((2, "a"))))),
        (32, message((1, "schema"), (2, message((1, text))))),
        (38, 1),
        (44, message((1, "self.x"), (6, 0))),
    )
    read_text = {"id": "", "type": "string", "default": "x", "enum": [None], "maxLength": 3}
    assert schema_in(definition(props)) == {
        "type": "object",
        "items": read_text,
        "allOf": [{"required": ["a", "b"]}],
        "properties": {"text": read_text, "number": {"type": "number", "maximum": 5, "minimum": -0.5}},
        "additionalProperties": read_text,
        "additionalItems": False,
        "dependencies": {"list": ["a"], "schema": read_text},
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": "self.x", "optionalOldSelf": False}],
    }


def nested(levels: int) -> bytes:
    props = message((5, "array"))
    for _ in range(levels):
        props = message((24, message((1, props))))
    return props


def test_schema_may_be_nested_as_deeply_as_in_json_and_not_without_end() -> None:
    read: Any = schema_in(definition(nested(64)))
    for _ in range(64):
        read = read["items"]
    assert read == {"type": "array"}
    with pytest.raises(ValueError, match="nested too deeply"):
        protobuf.decode(definition(nested(1_000)))


def test_number_of_values_is_bounded() -> None:
    with pytest.raises(protobuf.TooManyValuesError):
        protobuf.decode(definition(message(*[(29, b"")] * 30_000, *[(25, b"")] * 30_000)))
    with pytest.raises(protobuf.TooManyValuesError):
        protobuf.decode(definition(message((8, message((1, "[" + "1," * 60_000 + "1]"))))))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_number_that_json_does_not_have_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="unsupported number"):
        protobuf.decode(definition(double(9, value)))


def test_number_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="broken"):
        protobuf.decode(definition(message((9, b"123"))))
