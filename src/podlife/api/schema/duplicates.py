"""Keys that stand twice in one JSON object: decoding keeps the last of them, strict validation refuses them.

A decoder that tells of every key is slow, so the answer "none" comes from counting: a document without
duplicates has as many keys as what was decoded from it, and one with duplicates has more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["duplicate_fields"]

_MOST = 100


def duplicate_fields(raw: bytes, decoded: Any = None) -> list[str]:
    """`duplicate field "spec.x"` for every key that stands again in its object, in upstream's words.

    `raw` must be valid JSON. Who has decoded it already, and not changed it since, hands it over as `decoded`:
    most of the time goes into decoding."""
    plain = msgspec.json.encode(msgspec.json.decode(raw) if decoded is None else decoded)
    if plain == raw or count_keys(raw) == count_keys(plain):
        return []
    # Pairs stay pairs, so that an object is told from a list by its type. Numbers stay text: they do not matter,
    # and Python refuses very long ones.
    document = json.loads(raw, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    found = dict.fromkeys(
        f"duplicate field {json.dumps(path, ensure_ascii=False)}" for path in _walk(document, "")
    )
    return list(found)[:_MOST]


def count_keys(raw: bytes) -> int:
    """How many keys there are in a valid JSON document: the colons outside of strings."""
    if b"\\" in raw:
        # Escaped backslashes first: then a backslash before a quote does escape it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(raw.split(b'"')[::2]).count(b":")


class _Pairs(list[tuple[str, Any]]):
    __slots__ = ()


def _walk(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            at = f"{path}.{key}" if path else key
            if key in seen:
                yield at
            seen.add(key)
            yield from _walk(item, at)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
