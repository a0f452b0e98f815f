"""Path elements: one step from a value to a part of it, as FieldsV1 writes it.

`f:name` is a field or the key of a map, `k:{"name":"x"}` the element of a list with these keys, `v:"x"` a member of
a set, `i:3` a position. Elements are text, so that a field set is the dictionary that the API shows: it costs nothing
to read and to write, and dictionaries find an element by its hash.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from podlife.api.codec import encode, escape_as_go
from podlife.memory import emptied_with_memory

SELF = "."
"""The key of a node that says: the path down to here is a member itself."""

_SHORT = 64
_ORDER = {"f:": 0, "k:": 1, "v:": 2, "i:": 3}


def go_json(value: Any) -> str:
    """JSON as Go writes it, for keys that are compared by their text."""
    return escape_as_go(encode(value)).decode()


def key_element(keys: dict[str, Any]) -> str:
    """The element of a list whose elements have names of several fields. `keys` is sorted by name."""
    return "k:" + go_json(keys)


@emptied_with_memory
@lru_cache(maxsize=4096)
def _named(key: str, name: str) -> str:
    return f'k:{{"{key}":{go_json(name)}}}'


def named_element(key: str, name: str) -> str:
    """The element of a list whose elements have one name. Names repeat, so the short ones are remembered."""
    return _named(key, name) if len(name) <= _SHORT else _named.__wrapped__(key, name)


def value_element(value: Any) -> str:
    if type(value) is float and value.is_integer():
        # The same number as an integer.
        value = int(value)
    return "v:" + go_json(value)


def _rank(value: Any) -> tuple[int, Any]:
    """Upstream's order of values of several types: numbers, strings, booleans."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))


@emptied_with_memory
@lru_cache(maxsize=4096)
def sort_key(element: str) -> tuple[Any, ...]:
    """The position of an element among its siblings in FieldsV1."""
    kind = element[:2]
    order = _ORDER.get(kind, -1)
    if order <= 0:
        return order, element
    content = json.loads(element[2:])
    if kind == "k:":
        return order, tuple((name, _rank(value)) for name, value in content.items())
    return order, _rank(content)


def canonical_element(element: str) -> str | None:
    """An element from outside as this module writes it; None for a kind that is unknown, which readers ignore.

    Raises ValueError if it is malformed."""
    kind, content = element[:2], element[2:]
    if len(kind) < 2 or kind[1] != ":":
        raise ValueError(f"missing colon: {element}" if len(kind) == 2 else "key must be 2 characters long:")
    if kind == "f:":
        return element
    if kind not in _ORDER:
        return None
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if kind == "k:":
        if not isinstance(value, dict):
            raise ValueError(f"expected the keys of an element: {element}")
        return key_element(dict(sorted(value.items())))
    if kind == "i:" and type(value) is not int:
        raise ValueError(f"expected a position: {element}")
    if isinstance(value, dict | list):
        raise ValueError(f"expected a scalar: {element}")
    return kind + go_json(value)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def show(element: str) -> str:
    """The element in a message: `.spec`, `[name="x"]`, `[="x"]`, `[3]`."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "i:":
        return f"[{content}]"
    value = json.loads(content)
    if kind == "v:":
        return f"[={_shown(value)}]"
    return "[" + ",".join(f"{name}={_shown(item)}" for name, item in value.items()) + "]"


def show_path(path: tuple[str, ...]) -> str:
    return "".join(map(show, path))
