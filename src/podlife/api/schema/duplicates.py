"""Keys that stand twice in one JSON object: decoding keeps the last of them, strict validation refuses them.

A decoder that tells of every key is slow, so the answer "none" comes from counting: a document without
duplicates has as many keys as what was decoded from it, and one with duplicates has more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from podlife.api.codec import count_keys
from podlife.api.excerpt import excerpt_json

_MOST = 100
_LONGEST_PATH = 4 * 1024


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
    found: dict[str, None] = {}
    for path in _walk(document, []):
        found[f"duplicate field {excerpt_json(path, _LONGEST_PATH)}"] = None
        if len(found) == _MOST:
            break
    return list(found)


class _Pairs(list[tuple[str, Any]]):
    __slots__ = ()


def _walk(value: Any, way: list[str]) -> Iterator[str]:
    """The paths of duplicates below `way`, the steps down to here. They are joined only for those that are told: a
    key can be a megabyte long, and have a hundred thousand values below it."""
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            way.append(f".{key}" if way else key)
            if key in seen:
                yield "".join(way)
            seen.add(key)
            if isinstance(item, list):
                yield from _walk(item, way)
            way.pop()
    else:
        for index, item in enumerate(value):
            if isinstance(item, list):
                way.append(f"[{index}]")
                yield from _walk(item, way)
                way.pop()
