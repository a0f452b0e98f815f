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
# Complaints beyond this number stay unordered: each is looked for among the keys on its way.
_MOST_ORDERED = 30
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


def in_document_order(raw: bytes, duplicates: list[str], unknown: list[str]) -> list[str]:
    """Both kinds of complaints as a decoder meets them: a duplicate at its second key, an unknown field at its key.
    What is in an unknown field is skipped."""
    if duplicates and unknown:
        skipped = tuple(path for each in unknown if (path := _path_of(each)) is not None)
        duplicates = [each for each in duplicates if not _is_within(_path_of(each) or "", skipped)]
    complaints = [*duplicates, *unknown]
    if not duplicates or not unknown or len(complaints) > _MOST_ORDERED:
        return complaints
    document = json.loads(raw, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    positions: dict[str, list[int]] = {}
    wanted = {path for each in complaints if (path := _path_of(each)) is not None}
    for position, path in enumerate(_visits(document, wanted, 0)):
        positions.setdefault(path, []).append(position)

    def place(complaint: str) -> float:
        found = positions.get(_path_of(complaint) or "", ())
        occurrence = 1 if complaint in duplicates else 0
        return found[occurrence] if len(found) > occurrence else float("inf")

    return sorted(complaints, key=place)


def _is_within(path: str, others: tuple[str, ...]) -> bool:
    return any(
        path.startswith(other) and path[len(other) : len(other) + 1] in ("", ".", "[") for other in others
    )


def _path_of(complaint: str) -> str | None:
    """The path that a complaint names; None if it was cut."""
    try:
        path = json.loads(complaint[complaint.index('"') :])
    except ValueError:
        return None
    return path if isinstance(path, str) else None


def _visits(value: Any, wanted: set[str], offset: int) -> Iterator[str]:
    """The wanted paths in the order in which their keys come. `wanted` are those that lead through `value`, and the way
    to it is the first `offset` characters of each. Nothing beside these ways is read."""
    is_object = isinstance(value, _Pairs)
    for index, entry in enumerate(value):
        key, item = entry if is_object else (f"[{index}]", entry)
        step = f".{key}" if is_object and offset else key
        below = {path for path in wanted if path.startswith(step, offset)}
        if not below:
            continue
        end = offset + len(step)
        yield from (path for path in below if len(path) == end)
        if isinstance(item, list):
            yield from _visits(item, below, end)


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
