"""Lists in strategic patches: elements are found by their merge key (or are scalars), and put in order.

The order of a merged list is: what the patch names, in the patch's order; what only the server has, in the
server's order; and between the two the server's order where both are known to it, else the patch first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from podlife.api.patch.errors import go_format, go_type, malformed

Key = tuple[type, Any]


def same_value(value: Any) -> Key:
    """A scalar so that it is equal only to its like: in JSON true is not 1."""
    if isinstance(value, dict | list):
        raise malformed(f"expected a scalar, but received {go_format(value)}")
    return type(value), value


def key_of(element: Any, merge_key: str) -> Key:
    """What identifies an element: the value under the merge key, or without one the element itself."""
    if not merge_key:
        return same_value(element)
    if not isinstance(element, dict):
        raise malformed(
            f"expected a map[string]interface {{}}, but received a {go_type(element, '[]interface {}')}"
        )
    if merge_key not in element:
        raise malformed(f"map: {go_format(element)} does not contain declared merge key: {merge_key}")
    return same_value(element[merge_key])


def are_objects(*lists: Sequence[Any]) -> bool:
    """Whether the elements are objects; all must be of one type, and none a list."""
    kinds = {type(element) for elements in lists for element in elements}
    if kinds == {list}:
        raise _list_of_lists()
    if len(kinds) > 1:
        raise malformed(f"list element types are not identical: {go_format(list(lists))}")
    return kinds == {dict}


def _list_of_lists() -> Exception:
    error = malformed("the server rejected our request due to an error in our request")
    error.code, error.reason, error.cause = 422, "Invalid", "lists of lists are not supported"
    return error


def merge_scalars(original: list[Any], patch: list[Any]) -> list[Any]:
    """Both together, each value once."""
    return list({same_value(value): value for value in [*original, *patch]}.values())


def ordered(merged: list[Any], wanted: Sequence[Any], server: Sequence[Any], merge_key: str) -> list[Any]:
    """The merged elements in the order that `wanted` (the patch, or an explicit order) and `server` give."""
    place_wanted = _places(wanted, merge_key)
    place_server = _places(server, merge_key)
    named = [element for element in merged if key_of(element, merge_key) in place_wanted]
    others = [element for element in merged if key_of(element, merge_key) not in place_wanted]
    last = len(merged) + len(server)
    named.sort(key=lambda element: place_wanted[key_of(element, merge_key)])
    others.sort(key=lambda element: place_server.get(key_of(element, merge_key), last))
    waiting = deque(others)
    result: list[Any] = []
    for element in named:
        place = place_server.get(key_of(element, merge_key))
        while place is not None and waiting:
            other = place_server.get(key_of(waiting[0], merge_key))
            if other is None or other >= place:
                break
            result.append(waiting.popleft())
        result.append(element)
    return [*result, *waiting]


def _places(elements: Sequence[Any], merge_key: str) -> dict[Key, int]:
    places: dict[Key, int] = {}
    for place, element in enumerate(elements):
        places.setdefault(key_of(element, merge_key), place)
    return places
