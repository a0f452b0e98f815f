"""Duplicate keys of a JSON object: decoding keeps the last one, strict validation rejects them.

A decoder that reports every key is slow, so documents without duplicates are recognized by counting: they have as many
keys as the decoded value, and documents with duplicates have more.
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
    """`duplicate field "spec.x"` for every repeated key, in upstream's words.

    `raw` must be valid JSON. `decoded` is its decoded, unchanged value, if the caller has it: decoding takes most of
    the time."""
    plain = msgspec.json.encode(msgspec.json.decode(raw) if decoded is None else decoded)
    if plain == raw or count_keys(raw) == count_keys(plain):
        return []
    # `_Pairs` distinguishes an object from a list. Numbers stay text: they do not matter, and Python rejects very long
    # ones.
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
    """The paths of duplicates below `way`, the keys down to here. Only reported paths are joined: a key can be a
    megabyte long, and have a hundred thousand values below it."""
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
