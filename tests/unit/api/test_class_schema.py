"""Schemas of classes: what each annotation becomes, and what is refused, with the class and the field."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from podlife.api.crd import (
    EMBEDDED,
    PRESERVE_UNKNOWN,
    CustomResource,
    IntOrString,
    Quantity,
    definition_of,
    map_list,
    rule,
)
from podlife.api.views import Metadata
from podlife.errors import ConfigError
from tests.kit.gadget import Gadget

Props = dict[str, Any]


class Point(msgspec.Struct, frozen=True):
    """A place."""

    x: int
    y: int = 0


class Box(msgspec.Struct, frozen=True):
    sides: tuple[int, ...] = (1, 2)
    tags: tuple[str, ...] = ()


class Node(msgspec.Struct):
    children: list[Node] = []


class Tagged(msgspec.Struct, tag="t"):
    pass


class Other(msgspec.Struct, tag="o"):
    pass


class Listed(msgspec.Struct, array_like=True):
    pass


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Mixed(enum.Enum):
    A = "a"
    B = 1


@dataclass
class Record:
    name: str
    size: int = 3


Pair = namedtuple("Pair", ("a", "b"))
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


def schema(of: Any, **field: Any) -> Props:
    """The schema of a field of this type."""
    declared = ("value", of, msgspec.field(**field)) if field else ("value", of)
    thing: Any = msgspec.defstruct("Thing", [("metadata", Metadata), declared])
    definition = definition_of(CustomResource("example.com", "v1", "things")(thing))
    root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert root.get("required", []) == ([] if field else ["value"])
    found: Props = root["properties"]["value"]
    return found


def refusal(of: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        schema(of)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (bool, {"type": "boolean"}),
        (
            Annotated[int, Meta(gt=1, le=5)],
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5},
        ),
        (int | float, {"type": "number"}),
        (int | None, {"type": "integer", "nullable": True}),
        (Annotated[str, Meta(min_length=1, title="T")], {"type": "string", "minLength": 1, "title": "T"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (Literal["b", "a"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2, None], {"type": "integer", "enum": [1, 2]}),
        (IntOrString | None, {"x-kubernetes-int-or-string": True, "nullable": True}),
        (Any, PRESERVE),
        (msgspec.Raw, PRESERVE),
        (dict[str, Any], {"type": "object", **PRESERVE}),
        (list[Any], {"type": "array", "items": PRESERVE}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (frozenset[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (
            Annotated[dict[str, Any], EMBEDDED],
            {"type": "object", **PRESERVE, "x-kubernetes-embedded-resource": True},
        ),
    ],
)
def test_type_becomes_a_schema(of: Any, expected: Props) -> None:
    assert schema(of) == expected


def test_nested_class_is_inlined_with_its_docstring_and_defaults() -> None:
    point = {
        "description": "A place.",
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert schema(list[Point]) == {"type": "array", "items": point}
    assert schema(Annotated[Point, PRESERVE_UNKNOWN, Meta(description="Mine.")]) == {
        **point,
        **PRESERVE,
        "description": "Mine.",
    }
    record = {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}}
    assert schema(Record) == {"type": "object", "properties": record, "required": ["name"]}


@pytest.mark.parametrize(
    ("of", "field", "expected"),
    [
        (int, {"default": 3}, {"default": 3}),
        (str, {"default": ""}, {"default": ""}),
        (int | None, {"default": None}, {}),
        (list[int] | None, {"default": None}, {}),
        (list[int], {"default_factory": list}, {}),
        (tuple[int, ...], {"default": (1, 2)}, {"default": [1, 2]}),
        (set[int], {"default": frozenset((1,))}, {"default": [1]}),
        (Point, {"default": Point(1)}, {"default": {"x": 1}}),
        (Box, {"default_factory": Box}, {"default": {}}),
        (Box, {"default": Box((), ())}, {"default": {"sides": []}}),
        # A factory may return something else every time.
        (int, {"default_factory": lambda: 1}, {}),
        (int | msgspec.UnsetType, {"default": msgspec.UNSET}, {}),
    ],
)
def test_default_of_a_field_is_set_by_the_server(of: Any, field: Props, expected: Props) -> None:
    found = schema(of, **field)
    assert "nullable" not in found
    assert {name: each for name, each in found.items() if name == "default"} == expected


def test_rules_of_one_field_add_up() -> None:
    found = schema(Annotated[int, rule("self > 1", "too small"), rule("self < 9")])
    assert found["x-kubernetes-validations"] == [
        {"rule": "self > 1", "message": "too small"},
        {"rule": "self < 9"},
    ]


@pytest.mark.parametrize("text", ["0", "500m", "1Gi", "1.5", "-3k", "1e3", ".5"])
def test_quantity_is_accepted(text: str) -> None:
    assert msgspec.json.decode(f'"{text}"', type=Quantity) == text


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (
            Node,
            "Node.children: a CustomResourceDefinition cannot express a class inside itself (Node); declare",
        ),
        (Tagged | Other, "Thing.value: a CustomResourceDefinition cannot express tag_field of "),
        (Point | int, "Thing.value: a CustomResourceDefinition cannot express a union"),
        (str | bool, "Thing.value: a CustomResourceDefinition cannot express a union"),
        (tuple[int, str], "Thing.value: a CustomResourceDefinition cannot express the type Tuple"),
        (list[Listed], "Thing.value: a CustomResourceDefinition cannot express array_like of Listed"),
        (Strict, "Thing.value: a CustomResourceDefinition cannot express forbid_unknown_fields of Strict"),
        (Mixed, "Thing: Enums must contain either all str or all int"),
        (timedelta, "Thing.value: a CustomResourceDefinition cannot express the type TimeDelta"),
        (Decimal, "Thing.value: a CustomResourceDefinition cannot express the type Decimal"),
        (Literal["a", 1], "Thing.value: a CustomResourceDefinition cannot express a choice"),
        (complex, "Thing.value: a CustomResourceDefinition cannot express the type complex"),
        (bytes, "Thing.value: a CustomResourceDefinition cannot express the type Bytes"),
        (Pair, "Thing.value: a CustomResourceDefinition cannot express the type Pair"),
        (dict[int, str], "Thing.value: a CustomResourceDefinition cannot express the type Dict"),
        (
            dict[Annotated[str, Meta(max_length=3)], str],
            "Thing.value: a CustomResourceDefinition cannot express",
        ),
        (
            Annotated[int, Meta(extra_json_schema={"colour": "red"})],
            'Thing.value: unknown field "schema.colour"',
        ),
        (Annotated[int, Meta(extra_json_schema={"default": "x"})], "Thing.value: Invalid value"),
        (Annotated[int, Meta(extra_json_schema={"enum": "x"})], "Thing.value: json: cannot unmarshal string"),
        (Annotated[int, rule("self >")], "Thing.value: Invalid value"),
        (Annotated[int, rule("self == 'a'")], "Thing.value: Invalid value"),
        (Annotated[str, Meta(extra_json_schema={"pattern": "("})], "Thing.value: Invalid value"),
        (Annotated[list[Point], map_list("z")], "Thing.value: Invalid value"),
        (
            Annotated[list[Point], map_list("y"), rule("self.all(p, self.all(q, p.x != q.x))")],
            "Thing.value: Forbidden",
        ),
    ],
)
def test_what_a_definition_cannot_express_names_class_and_field(of: Any, text: str) -> None:
    assert text in refusal(of)


def test_class_without_metadata_is_refused() -> None:
    with pytest.raises(ConfigError, match="Point: a custom resource needs a field `metadata: Metadata`"):
        definition_of(CustomResource("example.com", "v1", "points")(msgspec.defstruct("Point", [("x", int)])))


def test_every_feature_together_is_valid() -> None:
    definition = definition_of(Gadget)
    version = definition["spec"]["versions"][0]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert properties["metadata"] == {"type": "object"}
    assert "default" not in properties["status"]
