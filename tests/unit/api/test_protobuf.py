"""Protobuf bodies: what a Go client sends, and what it must never be able to do to the server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api import protobuf


def message(*fields: tuple[int, bytes | int | str]) -> bytes:
    """The wire form of a message; the tests' own, so that reading is not tested with itself."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value % (1 << 64)))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(varint(number << 3 | 2) + varint(len(data)) + data)
    return b"".join(parts)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def envelope(api_version: str, kind: str, body: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, body))


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
