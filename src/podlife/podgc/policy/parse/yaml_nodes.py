"""YAML nodes with error locations.

`compose` returns one document of bounded depth and size, without aliases and tags, so a short text cannot expand.
Errors are collected with their locations and parsing goes on, so that all of them are reported at once. `values`
interprets the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from podlife.errors import ConfigError

YamlNode = yaml.Node

MOST_TOLD = 20
# Deeper than any policy, and far below the recursion limit.
_MOST_DEPTH = 20
# More than any policy has, and parsed within seconds: a running collector parses its policy too.
_MOST_VALUES = 50_000
# The tag of a value whose error was reported by `compose`.
_TOLD = "podlife/told"


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """Line and column count from 1; line 0 is the whole file."""

    line: int
    column: int
    text: str

    def at(self, name: str) -> str:
        return f"{name}:{self.line}:{self.column}: {self.text}" if self.line else f"{name}: {self.text}"


class PolicyError(ConfigError):
    """An invalid policy. The message has one line per error, in the order of the file."""

    def __init__(self, name: str, mistakes: Iterable[Mistake]) -> None:
        self.name = name
        # The same error is reported once per location.
        self.mistakes = tuple(sorted(set(mistakes)))
        lines = [mistake.at(name) for mistake in self.mistakes[:MOST_TOLD]]
        if (more := len(self.mistakes) - MOST_TOLD) > 0:
            lines.append(f"{name}: and {more} more {'error' if more == 1 else 'errors'}")
        super().__init__("\n".join(lines))


class Diagnostics:
    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add(self, node: YamlNode, text: str) -> None:
        self.at(node.start_mark, text)

    # Any: yaml's marks are untyped in some versions.
    def at(self, mark: Any, text: str) -> None:
        self.mistakes.append(Mistake(mark.line + 1, mark.column + 1, text))


def is_told(node: YamlNode) -> bool:
    """Whether an error of this value was reported already."""
    return bool(node.tag == _TOLD)


def compose(text: str, notes: Diagnostics) -> YamlNode | None:
    """The only document of the text; None if there is none or the YAML is invalid, which is reported."""
    # Not the C loader: deep nesting overflows its stack before the depth can be checked.
    try:
        loader = _Loader(text, notes)
    except yaml.reader.ReaderError as error:
        notes.mistakes.append(_unreadable(text, error))
        return None
    try:
        return loader.get_single_node()
    except yaml.reader.ReaderError as error:
        notes.mistakes.append(_unreadable(text, error))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = _problem(error)
        if mark is None:
            notes.mistakes.append(Mistake(0, 0, what))
        else:
            notes.at(mark, what)
    except _TooMuchError as error:
        notes.at(error.mark, str(error))
    finally:
        loader.dispose()
    return None


class _TooMuchError(Exception):
    def __init__(self, text: str, mark: Any) -> None:
        super().__init__(text)
        self.mark = mark


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str, notes: Diagnostics) -> None:
        super().__init__(text)
        self._notes = notes
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.get_event()  # type: ignore[no-untyped-call]
            self._notes.at(
                event.start_mark, f"aliases are not supported: replace *{event.anchor} with its value"
            )
            return yaml.ScalarNode(_TOLD, "", event.start_mark, event.end_mark)
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag is not None:
            self._notes.at(event.start_mark, f"tag {_short(event.tag)!r} is not supported: remove it")
            event.tag, event.implicit = None, _untagged(event)
        # Duplicate anchors are harmless, because aliases are refused.
        event.anchor = None
        self._depth += 1
        self._values += 1
        if self._depth > _MOST_DEPTH:
            text = f"nesting exceeds the maximum depth of {_MOST_DEPTH}"
            raise _TooMuchError(text, event.start_mark)
        if self._values > _MOST_VALUES:
            text = f"policy exceeds the maximum of {_MOST_VALUES} values"
            raise _TooMuchError(text, event.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def _untagged(event: Any) -> Any:
    if not isinstance(event, yaml.ScalarEvent):
        return True
    return (True, False) if event.style is None else (False, True)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = " ".join(str(error.problem or error.context or "parse error").split())
    if "'\\t'" in problem:
        return "invalid YAML: tab character: indent with spaces"
    if "but found another document" in problem:
        return "unexpected second document: a file has one policy"
    if "cannot start any token" in problem or "found undefined" in problem:
        return f"invalid YAML: {problem}: quote the text"
    # Rephrased for the author of the file, without the parser's terms.
    if "<stream end>" in problem or "unexpected end of stream" in problem:
        return "invalid YAML: unexpected end of file: close the bracket or quote"
    if "expected <block end>" in problem:
        return "invalid YAML: inconsistent indentation: indent it like its siblings"
    if "mapping values are not allowed" in problem:
        return "invalid YAML: a key is not allowed here: start a new line, or quote the text"
    return f"invalid YAML: {problem}"


def _unreadable(text: str, error: Any) -> Mistake:
    """A character that YAML does not allow."""
    before = text[: error.position]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    # The code point, or in some cases the character.
    sign = error.character if isinstance(error.character, int) else ord(error.character)
    return Mistake(line + 1, column + 1, f"invalid character U+{sign:04X}: remove it")
