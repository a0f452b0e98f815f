"""A structural schema, compiled from JSONSchemaProps: what pruning, defaulting and validation ask about a value.

The props have passed `check_structural`. A `Schema` is immutable after it was made, and safe to share between threads.
"""

from __future__ import annotations

from typing import Any

from podlife.api.patterns import Pattern, compile_pattern
from podlife.api.structural.formats import is_checked_format
from podlife.api.structural.props import Props

ABSENT: Any = object()
"""The default of a schema without one: null is a value."""


class Schema:
    __slots__ = (
        "additional",
        "all_of",
        "allows_additional",
        "any_of",
        "default",
        "embedded",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "has_defaults",
        "int_or_string",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "nullable",
        "one_of",
        "pattern",
        "preserve",
        "properties",
        "required",
        "types",
        "weight",
    )

    def __init__(self, props: Props) -> None:
        self.int_or_string: bool = props.get("x-kubernetes-int-or-string", False)
        self.types: tuple[str, ...] = ("integer", "string") if self.int_or_string else ()
        if props.get("type") and not self.int_or_string:
            self.types = (props["type"],)
        self.nullable: bool = props.get("nullable", False)
        self.format: str = props.get("format", "")
        if not is_checked_format(self.format, self.types):
            self.format = ""
        self._read_limits(props)
        self.preserve: bool = props.get("x-kubernetes-preserve-unknown-fields", False)
        self.embedded: bool = props.get("x-kubernetes-embedded-resource", False)
        self.list_type: str = props.get("x-kubernetes-list-type", "")
        self.list_map_keys: tuple[str, ...] = tuple(props.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = props.get("x-kubernetes-map-type", "")
        self._read_parts(props)

    def _read_limits(self, props: Props) -> None:
        self.maximum: float | None = props.get("maximum")
        self.minimum: float | None = props.get("minimum")
        self.exclusive_maximum: bool = props.get("exclusiveMaximum", False)
        self.exclusive_minimum: bool = props.get("exclusiveMinimum", False)
        self.multiple_of: float | None = props.get("multipleOf")
        self.max_length: int | None = props.get("maxLength")
        self.min_length: int | None = props.get("minLength")
        self.max_items: int | None = props.get("maxItems")
        self.min_items: int | None = props.get("minItems")
        self.max_properties: int | None = props.get("maxProperties")
        self.min_properties: int | None = props.get("minProperties")
        self.enum: list[Any] = props.get("enum", [])
        self.required: tuple[str, ...] = tuple(props.get("required", ()))
        text = props.get("pattern", "")
        self.pattern: Pattern | None = compile_pattern(text) if text else None

    def _read_parts(self, props: Props) -> None:
        self.properties = {name: Schema(each) for name, each in props.get("properties", {}).items()}
        additional = props.get("additionalProperties")
        self.additional: Schema | None = Schema(additional) if isinstance(additional, dict) else None
        # `false` forbids fields, `true` allows any; absent, validation allows and pruning removes them.
        self.allows_additional: bool | None = True if self.additional is not None else additional
        self.items: Schema | None = Schema(props["items"]) if isinstance(props.get("items"), dict) else None
        self.all_of = tuple(Schema(each) for each in props.get("allOf", ()))
        self.any_of = tuple(Schema(each) for each in props.get("anyOf", ()))
        self.one_of = tuple(Schema(each) for each in props.get("oneOf", ()))
        self.not_: Schema | None = Schema(props["not"]) if "not" in props else None
        self.default: Any = props.get("default", ABSENT)
        parts = [*self.properties.values(), self.additional, self.items]
        # Whether anything in it has a default: most parts of most schemas have none.
        self.has_defaults: bool = self.default is not ABSENT or any(
            part and part.has_defaults for part in parts
        )

        parts += [*self.all_of, *self.any_of, *self.one_of, self.not_]
        # About how many steps it takes to validate a small value.
        size = self.pattern.programsize // 16 if self.pattern is not None else 0
        own = 1 + len(self.required) + len(self.enum) + size
        self.weight: int = own + sum(part.weight for part in parts if part is not None)

    def field(self, name: str) -> Schema | None:
        """The schema of a field of an object."""
        return self.properties.get(name) or self.additional
