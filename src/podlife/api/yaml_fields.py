"""YAML values with their locations, so that an error names its line.

Errors are collected and reading goes on, so that all of them are reported at once. What values mean, and how an error
is phrased, is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


class YamlNode(Protocol):
    """A node of PyYAML's. Its `id` is scalar, sequence or mapping."""

    tag: str
    value: Any
    start_mark: Any

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """Line and column count from 1; line 0 is the whole file."""

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text

    def at(self, name: str) -> str:
        return f"{name}:{self.line}:{self.column}: {self.text}" if self.line else f"{name}: {self.text}"


class Diagnostics:
    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add(self, node: YamlNode, text: str) -> None:
        self.at(node.start_mark, text)

    # Any: yaml's marks are untyped in some versions.
    def at(self, mark: Any, text: str) -> None:
        """Without a mark the whole file is meant."""
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        self.mistakes.append(Mistake(line, column, text))


Read = Callable[[Diagnostics, YamlNode, str], Any]
"""Returns the value, or None after it has reported an error. The text is the path of the value in messages."""


def compose(
    text: str, notes: Diagnostics, phrase: Callable[[Any], str], loader: Callable[[str], Any] | None = None
) -> YamlNode | None:
    """The only document of the text; None if there is none or the YAML is invalid, which is reported. `phrase` gets
    PyYAML's error, or a RecursionError."""
    import yaml

    reader: Any = None
    try:
        # Not the C loader: deep nesting overflows its stack before the depth can be checked.
        reader = (loader or yaml.SafeLoader)(text)
        node: YamlNode | None = reader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        notes.at(getattr(error, "problem_mark", None), phrase(error))
    except (ValueError, OverflowError):
        # PyYAML does not check the numbers of escape sequences ("\UFFFFFFFF") and of %YAML.
        notes.at(reader.get_mark(), phrase(yaml.MarkedYAMLError(problem="number out of range")))
    else:
        return node
    return None


def known_entries(
    notes: Diagnostics,
    node: YamlNode,
    known: Collection[str],
    phrase: Callable[[YamlNode, str, int], str],
) -> Iterator[tuple[str, YamlNode, YamlNode]]:
    """The keys of a mapping, with the nodes of key and value. Unknown and duplicate keys are reported and left out:
    `phrase` gets the key and the line in which it was before, or 0."""
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        key = key_node.value if key_node.id == "scalar" else ""
        if key in lines or key not in known:
            notes.add(key_node, phrase(key_node, key, lines.get(key, 0)))
        else:
            yield key, key_node, value_node
        lines.setdefault(key, key_node.start_mark.line + 1)
