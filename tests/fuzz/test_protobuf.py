"""Protobuf bodies, as Go clients send them, mutated."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api.schema.table import type_named, type_of_kind
from tests.fuzz.conftest import share
from tests.fuzz.objects import Seed
from tests.fuzz.test_objects import remove
from tests.fuzz.values import broken_bytes, mutated_objects, seeds
from tests.fuzz.wire import Wire, judge

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def field(number: int, value: Any) -> bytes:
    """A field in the wire type that its value needs."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(key: str, obj: Any) -> bytes:
    """A struct as a message; what does not fit its type is written all the same, as bytes of its text."""
    if not isinstance(obj, dict):
        return str(obj).encode("utf-8", "replace")
    data = b""
    for name, value in obj.items():
        known = type_named(key).fields.get(name)
        if known is None or not known.numbers or value is None:
            continue
        written = b"".join(field(known.numbers[-1], item) for item in _items(known.type, value))
        for number in reversed(known.numbers[:-1]):
            written = field(number, written)
        data += written
    return data


def _items(kind: str, value: Any) -> list[Any]:
    if kind[0] == "[" and isinstance(value, list):
        return [_value(kind[1:], item) for item in value]
    if kind[0] == "{" and isinstance(value, dict):
        return [field(1, str(name)) + field(2, _value(kind[1:], item)) for name, item in value.items()]
    return [_value(kind, value)]


def _value(kind: str, value: Any) -> Any:
    if kind[0] == "@":
        return message(kind[1:], value)
    if kind in "bil" and isinstance(value, int):
        return int(value)
    if kind in "QTM":
        return field(1, value if isinstance(value, int) else str(value))
    if kind == "I":
        is_number = isinstance(value, int)
        return field(1, int(not is_number)) + field(2 if is_number else 3, value if is_number else str(value))
    return str(value)


def envelope(seed: Seed, body: bytes) -> bytes:
    row = seed.resource
    unknown = field(1, field(1, row.api_version) + field(2, row.kind)) + field(2, body)
    return b"k8s\x00" + unknown


@share(0.06)
@given(seed=seeds, data=st.data())
def test_a_mutated_protobuf_body_is_answered(wire: Wire, seed: Seed, data: st.DataObject) -> None:
    kind = type_of_kind(seed.resource.api_version, seed.resource.kind)
    assert kind is not None
    obj = data.draw(mutated_objects(seed, name="written"))
    body = envelope(seed, message(kind.key, obj))
    if data.draw(st.booleans()):
        body = data.draw(broken_bytes(body))
    answer = judge(wire.request("POST", seed.collection, body, Content_Type=MEDIA_TYPE))
    if answer.status == 201:
        name = answer.json["metadata"]["name"]
        assert judge(wire.request("GET", f"{seed.collection}/{name}")).status == 200
        remove(wire, f"{seed.collection}/{name}")
