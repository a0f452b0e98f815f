"""Mappings, lists and words of a policy file, and what is wrong with them.

YAML reads more into a plain word than its writer does: `on` is true, 22:00 is 1320, 010 is 8. Nothing here is taken
that another reader of YAML could take for something else; the mistake says what to write instead. Each function gives
the value, or None after it has noted what is wrong. `path` is how the value is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import yaml

from podlife.podgc.policy.parse.yaml_nodes import Node, Notes, is_told

__all__ = [
    "Field",
    "kind_of",
    "one_of",
    "read_fields",
    "read_list",
    "read_mapping",
    "read_text",
    "read_truth",
    "shown",
    "wrong_kind",
]

T = TypeVar("T")
Field = Callable[[Notes, Node, str], object]

_MOST_SHOWN = 60
# How like a known word another is that most likely means it (weekday does not mean Wed), and how much of one is enough.
_LIKENESS, _SHORTEST = 0.65, 3
_TAG = "tag:yaml.org,2002:"


def shown(text: str) -> str:
    """What was written, in quotes and not too long."""
    short = text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
    return repr(short)


# Mappings and lists


def read_mapping(notes: Notes, node: Node, path: str, known: Collection[str]) -> dict[str, tuple[Node, Node]]:
    """Keys and values by the keys' names; unknown keys and those that are there twice are noted and left out."""
    found: dict[str, tuple[Node, Node]] = {}
    if not isinstance(node, yaml.MappingNode):
        wrong_kind(notes, node, path, f"a mapping with {', '.join(known)}")
        return found
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            notes.add(key_node, f"a key of {path or 'the policy'} must be a word, one of {', '.join(known)}")
        elif key in found:
            first = found[key][0].start_mark.line + 1
            notes.add(
                key_node, f"{_joined(path, key)} is there twice, first in line {first}: leave one of them out"
            )
        elif key not in known:
            notes.add(key_node, _unknown(_joined(path, key), key, known))
        else:
            found[key] = (key_node, value_node)
    return found


def read_fields(notes: Notes, node: Node, path: str, known: Mapping[str, Field]) -> dict[str, object]:
    """What each key's field makes of its value; without those that are wrong."""
    values = {}
    for key, (_, value_node) in read_mapping(notes, node, path, known).items():
        if (value := known[key](notes, value_node, _joined(path, key))) is not None:
            values[key] = value
    return values


def read_list(
    notes: Notes,
    node: Node,
    path: str,
    read: Callable[[Notes, Node, str], T | None],
    empty: str = "",
) -> list[T] | None:
    """What `read` makes of each item; `empty` is what is wrong with a list of none, where something is."""
    if not isinstance(node, yaml.SequenceNode):
        example = f": write [{node.value}]" if _is_word(node) else ""
        wrong_kind(notes, node, path, f"a list{example}")
        return None
    if not node.value and empty:
        notes.add(node, f"{path} is an empty list: {empty}")
        return None
    found = [read(notes, each, f"{path}[{number}]") for number, each in enumerate(node.value)]
    good = [each for each in found if each is not None]
    return good if len(good) == len(found) else None


# Words


def read_text(notes: Notes, node: Node, path: str) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        wrong_kind(notes, node, path, "a text")
        return None
    if is_told(node):
        return None
    kind = kind_of(node)
    if kind == "null":
        notes.add(node, f"{path} is empty: write a value, or leave it out")
        return None
    if kind != "str":
        means = {"bool": "true or false", "timestamp": "a date"}.get(kind, "a number")
        text = shown(node.value)[1:-1]
        notes.add(node, f'{path} must be a text, and YAML reads {text} as {means}: write "{text}"')
        return None
    return str(node.value)


def one_of(notes: Notes, node: Node, path: str, words: Collection[str]) -> str | None:
    text = read_text(notes, node, path)
    if text is None or text in words:
        return text
    notes.add(node, f"{path} {shown(text)} is not known: {_meant(text, words)}")
    return None


def read_truth(notes: Notes, node: Node, path: str) -> bool | None:
    if is_told(node):
        return None
    if (
        isinstance(node, yaml.ScalarNode)
        and kind_of(node) == "bool"
        and node.value.lower() in ("true", "false")
    ):
        return bool(node.value.lower() == "true")
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, "true or false")
        return None
    instead = "false" if node.value.lower() in ("no", "off", "false", "0", "n") else "true"
    if node.value.lower() in ("true", "false"):
        notes.add(node, f"{path} is a text here: write {instead} without quotes")
    elif node.value.lower() in ("yes", "no", "on", "off", "y", "n", "0", "1"):
        notes.add(
            node, f"{path} {shown(node.value)} is not the same to every reader of YAML: write {instead}"
        )
    else:
        notes.add(node, f"{path} {shown(node.value)} must be true or false")
    return None


# What is wrong with a value


def wrong_kind(notes: Notes, node: Node, path: str, expected: str) -> None:
    if is_told(node):
        return
    if isinstance(node, yaml.ScalarNode) and kind_of(node) == "null":
        what = f"{path} is empty" if path else "this is empty"
        notes.add(node, f"{what}: write {expected.partition(': write ')[2] or expected}, or leave it out")
        return
    notes.add(node, f"{path or 'the policy'} is {_kind_of_node(node)} and must be {expected}")


def _kind_of_node(node: Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def kind_of(node: yaml.ScalarNode) -> str:
    return str(node.tag).removeprefix(_TAG)


def _is_word(node: Node) -> bool:
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) != "str":
        return False
    return bool(node.value.isprintable() and len(node.value) <= _MOST_SHOWN)


def _joined(path: str, key: str) -> str:
    word = key if key.isprintable() and 0 < len(key) <= _MOST_SHOWN else shown(key)
    return f"{path}.{word}" if path else word


def _unknown(path: str, key: str, known: Collection[str]) -> str:
    if key == "<<":
        return "<< is not taken here: write out what it stands for"
    return f"{path} is not known: {_meant(key, known)}"


def _is_begun(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _meant(word: str, known: Collection[str]) -> str:
    """The nearest word there is, or the only one that begins alike, or all of them."""
    folded = {each.lower(): each for each in known}
    asked = word.lower()[:_MOST_SHOWN]
    close = difflib.get_close_matches(asked, folded, 1, _LIKENESS)
    begun = [each for each in folded if min(len(asked), len(each)) >= _SHORTEST and _is_begun(asked, each)]
    close = close or (begun if len(begun) == 1 else [])
    return f"write {folded[close[0]]}" if close else f"there is {', '.join(known)}"
