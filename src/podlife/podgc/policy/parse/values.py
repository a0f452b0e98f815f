"""Parses mappings, lists, strings and booleans of a policy file.

YAML parsers disagree about plain scalars: `on` may be true, 22:00 may be 1320, 010 may be 8. Ambiguous values are
refused, with what to write instead. Each function returns the value, or None after it has reported an error. `path` is
the name of the value in messages.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import yaml

from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, YamlNode, is_told

T = TypeVar("T")
Field = Callable[[Diagnostics, YamlNode, str], object]

_MOST_SHOWN = 60
# Minimum similarity to suggest a known word (weekday is not Wed), and minimum length of a common prefix.
_LIKENESS, _SHORTEST = 0.65, 3
_TAG = "tag:yaml.org,2002:"


def shown(text: str) -> str:
    """The input, quoted and shortened."""
    short = text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
    return repr(short)


# Mappings and lists


def read_mapping(
    notes: Diagnostics, node: YamlNode, path: str, known: Collection[str]
) -> dict[str, tuple[YamlNode, YamlNode]]:
    """Key and value nodes by key; unknown and duplicate keys are reported and left out."""
    found: dict[str, tuple[YamlNode, YamlNode]] = {}
    if not isinstance(node, yaml.MappingNode):
        wrong_kind(notes, node, path, f"a mapping with {', '.join(known)}")
        return found
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            notes.add(key_node, f"{path or 'policy'}: invalid key: expected one of {', '.join(known)}")
        elif key in found:
            first = found[key][0].start_mark.line + 1
            notes.add(
                key_node, f"duplicate field {_joined(path, key)}, first in line {first}: remove one of them"
            )
        elif key not in known:
            notes.add(key_node, _unknown(_joined(path, key), key, known))
        else:
            found[key] = (key_node, value_node)
    return found


def read_fields(
    notes: Diagnostics, node: YamlNode, path: str, known: Mapping[str, Field]
) -> dict[str, object]:
    """The parsed values by key, without those that have errors."""
    values = {}
    for key, (_, value_node) in read_mapping(notes, node, path, known).items():
        if (value := known[key](notes, value_node, _joined(path, key))) is not None:
            values[key] = value
    return values


def read_list(
    notes: Diagnostics,
    node: YamlNode,
    path: str,
    read: Callable[[Diagnostics, YamlNode, str], T | None],
    empty: str = "",
) -> list[T] | None:
    """The parsed items; `empty` is what to do instead of an empty list, where that is an error."""
    if not isinstance(node, yaml.SequenceNode):
        example = f": write [{node.value}]" if _is_word(node) else ""
        wrong_kind(notes, node, path, f"a list{example}")
        return None
    if not node.value and empty:
        notes.add(node, f"{path}: must not be empty: {empty}")
        return None
    found = [read(notes, each, f"{path}[{number}]") for number, each in enumerate(node.value)]
    good = [each for each in found if each is not None]
    return good if len(good) == len(found) else None


# Scalars


def read_text(notes: Diagnostics, node: YamlNode, path: str) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        wrong_kind(notes, node, path, "a string")
        return None
    if is_told(node):
        return None
    kind = kind_of(node)
    if kind == "null":
        notes.add(node, f"{path} is empty: set a value, or omit it")
        return None
    if kind != "str":
        means = {"bool": "a boolean", "timestamp": "a date"}.get(kind, "a number")
        text = shown(node.value)[1:-1]
        notes.add(node, f'{path}: expected a string, but YAML reads {text} as {means}: write "{text}"')
        return None
    return str(node.value)


def one_of(notes: Diagnostics, node: YamlNode, path: str, words: Collection[str]) -> str | None:
    text = read_text(notes, node, path)
    if text is None or text in words:
        return text
    notes.add(node, f"{path}: unknown value {shown(text)}: {_meant(text, words)}")
    return None


def read_truth(notes: Diagnostics, node: YamlNode, path: str) -> bool | None:
    if is_told(node):
        return None
    if (
        isinstance(node, yaml.ScalarNode)
        and kind_of(node) == "bool"
        and node.value.lower() in ("true", "false")
    ):
        return bool(node.value.lower() == "true")
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, "a boolean: write true or false")
        return None
    instead = "false" if node.value.lower() in ("no", "off", "false", "0", "n") else "true"
    if node.value.lower() in ("true", "false"):
        notes.add(node, f"{path}: expected a boolean, got a string: write {instead} without quotes")
    elif node.value.lower() in ("yes", "no", "on", "off", "y", "n", "0", "1"):
        notes.add(node, f"{path}: ambiguous boolean {shown(node.value)}: write {instead}")
    else:
        notes.add(node, f"{path}: invalid boolean {shown(node.value)}: expected true or false")
    return None


# Errors


def wrong_kind(notes: Diagnostics, node: YamlNode, path: str, expected: str) -> None:
    if is_told(node):
        return
    if isinstance(node, yaml.ScalarNode) and kind_of(node) == "null":
        notes.add(
            node,
            f"{path or 'policy'} is empty: set {expected.partition(': write ')[2] or expected}, or omit it",
        )
        return
    kind, colon, instead = expected.partition(": ")
    notes.add(node, f"{path or 'policy'}: expected {kind}, got {_kind_of_node(node)}{colon}{instead}")


def _kind_of_node(node: YamlNode) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def kind_of(node: yaml.ScalarNode) -> str:
    return str(node.tag).removeprefix(_TAG)


def _is_word(node: YamlNode) -> bool:
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) != "str":
        return False
    return bool(node.value.isprintable() and len(node.value) <= _MOST_SHOWN)


def _joined(path: str, key: str) -> str:
    word = key if key.isprintable() and 0 < len(key) <= _MOST_SHOWN else shown(key)
    return f"{path}.{word}" if path else word


def _unknown(path: str, key: str, known: Collection[str]) -> str:
    if key == "<<":
        return "merge keys (<<) are not supported: write out the values"
    return f"unknown field {path}: {_meant(key, known)}"


def _is_begun(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _meant(word: str, known: Collection[str]) -> str:
    """Suggests the most similar word, or the only one with the same prefix, or all of them."""
    folded = {each.lower(): each for each in known}
    asked = word.lower()[:_MOST_SHOWN]
    close = difflib.get_close_matches(asked, folded, 1, _LIKENESS)
    begun = [each for each in folded if min(len(asked), len(each)) >= _SHORTEST and _is_begun(asked, each)]
    close = close or (begun if len(begun) == 1 else [])
    return f"did you mean {folded[close[0]]}?" if close else f"expected one of {', '.join(known)}"
