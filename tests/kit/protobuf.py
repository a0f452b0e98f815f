"""Protobuf messages, written by the tests' own encoder, so that reading is not tested with itself."""

from __future__ import annotations


def message(*fields: tuple[int, bytes | int | str]) -> bytes:
    """The wire form of a message."""
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
