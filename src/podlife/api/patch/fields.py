"""Fields in strategic patches: how each is treated, and how elements of lists are found and ordered.

Order of a merged list: elements of the patch in the patch's order, elements that only the server has in the server's
order; between the two the server's order if the server has both, else the patch first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from podlife.api.patch.errors import PatchError, go_format, go_type_of
from podlife.api.schema import Field, type_named, type_of_kind
from podlife.memory import cache_values

Key = tuple[type, Any]


class Treatment(NamedTuple):
    """`type` is that of the value or, for a list, of its elements, in the notation of `schema.table`."""

    type: str
    strategy: str = ""
    merge_key: str = ""
    retains_keys: bool = False


def type_key(api_version: str, kind: str) -> str:
    """The type of a kind. Raises PatchError if the kind is unknown."""
    found = type_of_kind(api_version, kind)
    if found is None:
        raise PatchError(
            f'no strategic merge patch for kind "{kind}" in version "{api_version}"',
            code=415,
            reason="UnsupportedMediaType",
        )
    return "@" + found.key


@cache_values
def object_treatment(parent: str, name: str) -> Treatment:
    """How a field that holds an object is patched."""
    return _treatment(_field(parent, name))


@cache_values
def list_treatment(parent: str, name: str) -> Treatment:
    """How a field that holds a list is patched."""
    treatment = _treatment(_field(parent, name))
    if not treatment.type.startswith("["):
        raise PatchError("expected slice or array type, but got: struct")
    return treatment._replace(type=treatment.type[1:])


def _treatment(field: Field) -> Treatment:
    strategies = [name for name in field.strategy.split(",") if name]
    retains = "retainKeys" in strategies
    rest = [name for name in strategies if name != "retainKeys"]
    return Treatment(field.type, rest[0] if rest else "", field.merge_key, retains)


def _field(parent: str, name: str) -> Field:
    if not parent.startswith("@"):
        shown = "map" if parent.startswith("{") else "struct"
        raise PatchError(f"merging an object in json but data type is not struct, instead is: {shown}")
    kind = type_named(parent[1:])
    if found := kind.fields.get(name):
        return found
    # Upstream falls back to a case-insensitive match.
    folded = name.casefold()
    for field in kind.fields.values():
        if field.name.casefold() == folded:
            return field
    raise PatchError(f'unable to find api field in struct {kind.name} for the json field "{name}"')


def same_value(value: Any) -> Key:
    """A scalar with its type, because in JSON true is not 1."""
    if isinstance(value, dict | list):
        raise PatchError(f"expected a scalar, but received {go_format(value)}")
    return type(value), value


def key_of(element: Any, merge_key: str) -> Key:
    """Identity of an element: the value of the merge key or, without one, the element itself."""
    if not merge_key:
        return same_value(element)
    if not isinstance(element, dict):
        raise PatchError(
            f"expected a map[string]interface {{}}, but received a {go_type_of(element, '[]interface {}')}"
        )
    if merge_key not in element:
        raise PatchError(f"map: {go_format(element)} does not contain declared merge key: {merge_key}")
    return same_value(element[merge_key])


def are_objects(*lists: Sequence[Any]) -> bool:
    """Whether the elements are objects. Raises PatchError for mixed types and for lists of lists."""
    kinds = {type(element) for elements in lists for element in elements}
    if kinds == {list}:
        raise _list_of_lists()
    if len(kinds) > 1:
        raise PatchError(f"list element types are not identical: {go_format(list(lists))}")
    return kinds == {dict}


def _list_of_lists() -> Exception:
    error = PatchError("the server rejected our request due to an error in our request")
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
