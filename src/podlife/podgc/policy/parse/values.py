"""Types of the values in a policy file: how each is parsed, described in the JSON Schema, and printed.

The fields of a mapping are a table of `Field`s; parsing, schema and printing all follow it. YAML parsers disagree about
plain scalars: `on` may be true, 22:00 may be 1320, 010 may be 8. Ambiguous values are refused, with what to write
instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from podlife.api.yaml_fields import Diagnostics, Read, YamlNode, known_entries
from podlife.podgc.policy.parse.yaml_nodes import is_reported

T = TypeVar("T")
Schema = dict[str, Any]
_MAX_SHOWN = 60
# Minimum similarity to suggest a known word (weekday is not Wed), and minimum length of a common prefix.
_MIN_SIMILARITY, _MIN_PREFIX = 0.65, 3
_TAG = "tag:yaml.org,2002:"


class InvalidScalarError(ValueError):
    """What is wrong with a scalar, and what to write instead. Its path is added to the message."""


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class ValueType:
    """`write` returns the value as it is printed in a policy file."""

    read: Read
    schema: Schema
    write: Callable[[Any], Any] = _unchanged


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a mapping. `attribute` is its name in the model; `default` is only for the schema."""

    attribute: str
    type: ValueType
    description: str = ""
    default: object = None

    @property
    def schema(self) -> Schema:
        described = {"description": self.description} if self.description else {}
        is_reference = "$ref" in self.type.schema
        schema = self.type.schema | described if is_reference else described | self.type.schema
        return schema if self.default is None else {**schema, "default": self.default}


Fields = Mapping[str, Field]
"""The fields of a mapping, by key."""


def shown(text: str) -> str:
    """The input, quoted and shortened."""
    short = text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
    return repr(short)


# Mappings


def read_mapping(
    notes: Diagnostics, node: YamlNode, path: str, known: Collection[str]
) -> dict[str, tuple[YamlNode, YamlNode]]:
    """Key and value nodes by key; unknown and duplicate keys are reported and left out."""

    def phrase(key_node: YamlNode, key: str, first_line: int) -> str:
        if not isinstance(key_node, yaml.ScalarNode):
            return f"{path or 'policy'}: invalid key: expected one of {', '.join(known)}"
        if key not in known:
            return _unknown(_joined(path, key), key, known)
        return f"duplicate field {_joined(path, key)}, first in line {first_line}: remove one of them"

    if not isinstance(node, yaml.MappingNode):
        wrong_kind(notes, node, path, f"a mapping with {', '.join(known)}")
        return {}
    return {key: (key_node, value) for key, key_node, value in known_entries(notes, node, known, phrase)}


def read_fields(
    notes: Diagnostics, node: YamlNode, path: str, fields: Fields
) -> tuple[dict[str, tuple[YamlNode, YamlNode]], dict[str, Any]]:
    """Key and value nodes by key, and the values by attribute, without those that have errors."""
    found = read_mapping(notes, node, path, fields)
    values = {}
    for key, (_, value_node) in found.items():
        if (value := fields[key].type.read(notes, value_node, _joined(path, key))) is not None:
            values[fields[key].attribute] = value
    return found, values


def write_fields(fields: Fields, model: object) -> dict[str, Any]:
    """The fields of a model as in a policy file, without those that are not set or empty."""
    values = ((key, field.type, getattr(model, field.attribute)) for key, field in fields.items())
    return {key: type_.write(value) for key, type_, value in values if value not in (None, (), frozenset())}


def mapping_schema(
    description: str, properties: Mapping[str, Schema], required: Collection[str] = ()
) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        **needed,
        "additionalProperties": False,
    }


def fields_schema(description: str, fields: Fields, required: Collection[str] = ()) -> Schema:
    return mapping_schema(description, {key: field.schema for key, field in fields.items()}, required)


def reference(name: str) -> Schema:
    """The schema of a type that is defined once for the whole document."""
    return {"$ref": f"#/$defs/{name}"}


# Lists


def read_list(notes: Diagnostics, node: YamlNode, path: str, read: Read, empty: str = "") -> list[Any] | None:
    """The parsed items; `empty` is what to do instead of an empty list, where that is an error."""
    if not isinstance(node, yaml.SequenceNode):
        wrong_kind(notes, node, path, "a list", f"[{node.value}]" if _is_word(node) else "")
        return None
    if not node.value and empty:
        notes.add(node, f"{path}: must not be empty: {empty}")
        return None
    items = [read(notes, each, f"{path}[{number}]") for number, each in enumerate(node.value)]
    valid = [each for each in items if each is not None]
    return valid if len(valid) == len(items) else None


def list_of(
    item: ValueType, empty: str = "", collect: Callable[[Iterable[Any]], Collection[Any]] = tuple
) -> ValueType:
    """`empty` as in `read_list`."""

    def read(notes: Diagnostics, node: YamlNode, path: str) -> Collection[Any] | None:
        items = read_list(notes, node, path, item.read, empty)
        return None if items is None else collect(items)

    def write(values: Collection[Any]) -> list[Any]:
        return [item.write(each) for each in (values if isinstance(values, tuple) else sorted(values))]

    minimum = {"minItems": 1} if empty else {}
    return ValueType(read, {"type": "array", "items": item.schema, **minimum}, write)


# Scalars


def scalar(
    read: Callable[[yaml.ScalarNode], T], expected: str, instead: str = "", *, empty: str = ""
) -> Callable[[Diagnostics, YamlNode, str], T | None]:
    """A `Read` for scalars that have a value; for `expected`, `instead` and `empty` see `wrong_kind`. `read` raises
    InvalidScalarError."""

    def checked(notes: Diagnostics, node: YamlNode, path: str) -> T | None:
        if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null" or is_reported(node):
            wrong_kind(notes, node, path, expected, instead, empty=empty)
            return None
        try:
            return read(node)
        except InvalidScalarError as error:
            notes.add(node, f"{path}: {error}")
            return None

    return checked


def text(read: Callable[[str], T]) -> Callable[[Diagnostics, YamlNode, str], T | None]:
    """A `Read` for strings. `read` raises InvalidScalarError."""

    def checked(node: yaml.ScalarNode) -> T:
        kind = kind_of(node)
        if kind != "str":
            means = {"bool": "a boolean", "timestamp": "a date"}.get(kind, "a number")
            word = shown(node.value)[1:-1]
            raise InvalidScalarError(f'expected a string, but YAML reads {word} as {means}: write "{word}"')
        return read(str(node.value))

    return scalar(checked, "a string", empty="a value")


def text_schema(description: str = "", pattern: str = r"\S") -> Schema:
    described = {"description": description} if description else {}
    return {**described, "type": "string", "pattern": pattern}


def known_word(word: str, words: Collection[str]) -> str:
    """Raises InvalidScalarError unless the word is one of these."""
    if word not in words:
        raise InvalidScalarError(f"unknown value {shown(word)}: {_suggestion(word, words)}")
    return word


def choice(values: Mapping[str, Any]) -> ValueType:
    """One of these words, each with its value in the model."""
    words = {value: word for word, value in values.items()}
    return ValueType(
        text(lambda word: values[known_word(word, values)]), {"enum": list(values)}, words.__getitem__
    )


def _read_boolean(node: yaml.ScalarNode) -> bool:
    word = node.value.lower()
    if word in ("true", "false") and kind_of(node) == "bool":
        return bool(word == "true")
    instead = "false" if word in ("no", "off", "false", "0", "n") else "true"
    if word in ("true", "false"):
        raise InvalidScalarError(f"expected a boolean, got a string: write {instead} without quotes")
    if word in ("yes", "no", "on", "off", "y", "n", "0", "1"):
        raise InvalidScalarError(f"ambiguous boolean {shown(node.value)}: write {instead}")
    raise InvalidScalarError(f"invalid boolean {shown(node.value)}: expected true or false")


BOOLEAN = ValueType(scalar(_read_boolean, "a boolean", "true or false"), {"type": "boolean"})


# Errors


def wrong_kind(
    notes: Diagnostics, node: YamlNode, path: str, expected: str, instead: str = "", *, empty: str = ""
) -> None:
    """Reports a value that is missing or of another kind than `expected`; `instead` is what to write, `empty` what to
    set if there is no value."""
    if is_reported(node):
        return
    if isinstance(node, yaml.ScalarNode) and kind_of(node) == "null":
        notes.add(node, f"{path or 'policy'} is empty: set {empty or instead or expected}, or omit it")
        return
    write = f": write {instead}" if instead else ""
    notes.add(node, f"{path or 'policy'}: expected {expected}, got {_kind_of_node(node)}{write}")


def _kind_of_node(node: YamlNode) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def kind_of(node: yaml.ScalarNode) -> str:
    return str(node.tag).removeprefix(_TAG)


def _is_word(node: YamlNode) -> bool:
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) != "str":
        return False
    return bool(node.value.isprintable() and len(node.value) <= _MAX_SHOWN)


def _joined(path: str, key: str) -> str:
    word = key if key.isprintable() and 0 < len(key) <= _MAX_SHOWN else shown(key)
    return f"{path}.{word}" if path else word


def _unknown(path: str, key: str, known: Collection[str]) -> str:
    if key == "<<":
        return "merge keys (<<) are not supported: write out the values"
    return f"unknown field {path}: {_suggestion(key, known)}"


def _is_prefix(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _suggestion(word: str, known: Collection[str]) -> str:
    """Suggests the most similar word, or the only one with the same prefix, or all of them."""
    folded = {each.lower(): each for each in known}
    lower = word.lower()[:_MAX_SHOWN]
    close = difflib.get_close_matches(lower, folded, 1, _MIN_SIMILARITY)
    prefixed = [
        each for each in folded if min(len(lower), len(each)) >= _MIN_PREFIX and _is_prefix(lower, each)
    ]
    close = close or (prefixed if len(prefixed) == 1 else [])
    return f"did you mean {folded[close[0]]}?" if close else f"expected one of {', '.join(known)}"
