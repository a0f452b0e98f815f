"""Bodies at their worst: for every list and every map that the schema knows, as much of it as a request can carry.

Nothing here knows what the server does with a field. A list is filled with elements that are all equal, all different,
all invalid or all empty, small ones and full ones; beside it stand the lists of the same object, filled alike, since
many checks hold one list against another.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from podlife.api.codec import MOST_VALUES
from podlife.api.schema import Field, Type, type_named, type_of_kind
from tests.fuzz.objects import SEEDS, Object, Seed

MOST_BYTES = 3 * 1024 * 1024
# Left for the object around the list.
_MARGIN_BYTES, _MARGIN_VALUES = 8 * 1024, 1_000
VARIANTS = (
    "equal",
    "different",
    "invalid",
    "empty",
    "full equal",
    "full different",
    "full invalid",
    "together",
)


# What must be right for the checks of the whole object to get to a list, and past it.
_VALID: dict[str, Object] = {
    "Container": {"name": "other", "image": "i"},
    "EphemeralContainer": {"name": "another", "image": "i"},
    "TopologySpreadConstraint": {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway"},
    "PodAffinityTerm": {"topologyKey": "k"},
    "ContainerPort": {"containerPort": 80, "protocol": "TCP"},
    "Toleration": {"operator": "Exists"},
    "EnvVar": {"name": "a"},
    "Volume": {"name": "a", "emptyDir": {}},
    "OwnerReference": {"apiVersion": "v1", "kind": "a", "name": "a", "uid": "a"},
}


@dataclass(frozen=True)
class Place:
    """One list or map: whose object it stands in, and the way there (field names; None goes into the first element)."""

    seed: Seed
    way: tuple[str | None, ...]
    field: Field
    owner: Type

    def __repr__(self) -> str:
        return f"{self.seed!r}:{'.'.join('0' if step is None else step for step in self.way)}"


def places() -> list[Place]:
    """Every list and map of every type, where it is met first. Templates repeat the whole of a pod: once is enough."""
    found: dict[tuple[str, str], Place] = {}
    for seed in SEEDS:
        kind = type_of_kind(seed.resource.api_version, seed.resource.kind)
        assert kind is not None
        for place in _places_in(seed, kind, (), ()):
            found.setdefault((place.owner.key, place.field.name), place)
    return list(found.values())


def _places_in(
    seed: Seed, kind: Type, way: tuple[str | None, ...], above: tuple[str, ...]
) -> Iterator[Place]:
    if kind.key in above:
        return
    for field in kind.fields.values():
        element, here = field.type, (*way, field.name)
        if element[0] in "[{":
            yield Place(seed, here, field, kind)
            if element[0] == "{":
                continue
            element, here = element[1:], (*here, None)
        if element[0] == "@":
            yield from _places_in(seed, type_named(element[1:]), here, (*above, kind.key))


def body(place: Place, variant: str, values: int = MOST_VALUES, *, elements: int = 0) -> bytes:
    """The object as JSON, with so many elements in this place that no bound is passed, or with exactly so many."""
    size = MOST_BYTES
    obj = deepcopy(place.seed.object("hostile"))
    holder = _holder(obj, place)
    if variant == "together":
        others = [field for field in place.owner.fields.values() if field.type[0] in "[{"]
        for field in others:
            share = size // len(others), values // len(others), elements
            holder[field.name] = _filled(field, "equal", *share)
    else:
        holder[place.field.name] = _filled(place.field, variant, size, values, elements)
    return msgspec.json.encode(obj)


def _holder(obj: dict[str, Any], place: Place) -> dict[str, Any]:
    """The object that has the field, made where it is missing."""
    here: Any = obj
    kind = type_of_kind(place.seed.resource.api_version, place.seed.resource.kind)
    assert kind is not None
    for step in place.way[:-1]:
        if step is None:
            continue
        field = kind.fields[step]
        kind = type_named(field.type.removeprefix("[")[1:])
        if field.type[0] == "[":
            here = here.setdefault(step, [])
            if not here:
                here.append(deepcopy(_VALID.get(kind.name)) or _element("@" + kind.key, "equal", 0))
            here = here[0]
        else:
            here = here.setdefault(step, {})
    assert isinstance(here, dict)
    return here


def _filled(field: Field, variant: str, size: int, values: int, elements: int) -> Any:
    kind = field.type[1:]
    sample = _element(kind, variant, 999_999)
    is_map = field.type[0] == "{"
    each = len(msgspec.json.encode(sample)) + 1 + (10 if is_map else 0)
    commas = 1 + msgspec.json.encode(sample).count(b",")
    count = elements or max(2, min((size - _MARGIN_BYTES) // each, (values - _MARGIN_VALUES) // commas))
    if is_map:
        bad = "-/ä" if "invalid" in variant else "k"
        return {f"{bad}{number:06}": _element(kind, variant, number) for number in range(count)}
    return [_element(kind, variant, number) for number in range(count)]


def _element(kind: str, variant: str, number: int) -> Any:
    if kind[0] in "[{":
        return [] if kind[0] == "[" else {}
    if kind[0] != "@":
        return _scalar(kind, variant, number)
    if variant == "empty":
        return {}
    if variant == "equal" and (valid := _VALID.get(type_named(kind[1:]).name)):
        return dict(valid)
    fields = [field for field in type_named(kind[1:]).fields.values() if field.type[0] not in "[{@"]
    if not variant.startswith("full"):
        # What tells elements apart comes first in most types; the smaller they are, the more there are.
        fields = sorted(fields, key=lambda field: field.name not in ("name", "key"))[:1]
    return {field.name: _scalar(field.type, variant, number) for field in fields}


def _scalar(kind: str, variant: str, number: int) -> Any:
    if variant == "empty":
        number = 0
    is_bad, is_other = "invalid" in variant, "different" in variant
    match kind:
        case "s":
            return "" if variant == "empty" else "-/ä" if is_bad else f"a{number}" if is_other else "a"
        case "b":
            return True
        case "i" | "l" | "I":
            return -1 if is_bad else number if is_other else 1
        case "y":
            return "YQ=="
        case "T":
            return "2030-01-01T00:00:00Z"
        case "M":
            return "2030-01-01T00:00:00.000000Z"
        case "Q":
            return "-1" if is_bad else str(number) if is_other else "1"
    return {"a": number}
