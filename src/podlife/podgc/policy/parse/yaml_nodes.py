"""YAML as a tree that knows its places, and the mistakes in it.

A tree that comes out of `compose` is one document of bounded depth, without aliases and without tags: what a short
text can mean is as short. Everything that is wrong is noted with its place and the rest is read on, so that one look
tells of all mistakes. What a value means is for `reading_values`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from podlife.errors import ConfigError

__all__ = ["MOST_TOLD", "Mistake", "Node", "Notes", "PolicyError", "compose", "is_told"]

Node = yaml.Node

MOST_TOLD = 20
# Deeper than any policy, and far from the end of any stack.
_MOST_DEPTH = 20
# More than any policy has, and read within seconds: a collector that runs reads its policy too.
_MOST_VALUES = 50_000
# A value that was found wrong before anybody asked what it means.
_TOLD = "podlife/told"


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """Line and column count from 1; line 0 is the file as a whole."""

    line: int
    column: int
    text: str

    def at(self, name: str) -> str:
        return f"{name}:{self.line}:{self.column}: {self.text}" if self.line else f"{name}: {self.text}"


class PolicyError(ConfigError):
    """A policy that cannot be used. The text is a line for each mistake, the first of them first."""

    def __init__(self, name: str, mistakes: Iterable[Mistake]) -> None:
        self.name = name
        # A place that is wrong in one way is not wrong twice.
        self.mistakes = tuple(sorted(set(mistakes)))
        lines = [mistake.at(name) for mistake in self.mistakes[:MOST_TOLD]]
        if (more := len(self.mistakes) - MOST_TOLD) > 0:
            lines.append(f"{name}: and {more} more {'mistake' if more == 1 else 'mistakes'}")
        super().__init__("\n".join(lines))


class Notes:
    """The mistakes that were found so far."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add(self, node: Node, text: str) -> None:
        self.at(node.start_mark, text)

    # Any: a mark of yaml's, which has no type in every version.
    def at(self, mark: Any, text: str) -> None:
        self.mistakes.append(Mistake(mark.line + 1, mark.column + 1, text))


def is_told(node: Node) -> bool:
    """Whether what is wrong with this value was noted already."""
    return bool(node.tag == _TOLD)


def compose(text: str, notes: Notes) -> Node | None:
    """The one document of the text; None where there is none, or where it is no YAML, which is noted."""
    # The loader in Python: one in C overflows its stack where this one can say that it is too deep.
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
    def __init__(self, text: str, notes: Notes) -> None:
        super().__init__(text)
        self._notes = notes
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.get_event()  # type: ignore[no-untyped-call]
            self._notes.at(
                event.start_mark, f"write out what *{event.anchor} stands for: aliases are not taken here"
            )
            return yaml.ScalarNode(_TOLD, "", event.start_mark, event.end_mark)
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag is not None:
            self._notes.at(event.start_mark, f"the tag {_short(event.tag)!r} is not taken here: leave it out")
            event.tag, event.implicit = None, _untagged(event)
        # Two anchors of one name are no mistake where nobody may use them.
        event.anchor = None
        self._depth += 1
        self._values += 1
        if self._depth > _MOST_DEPTH:
            text = f"this is nested more than {_MOST_DEPTH} levels deep: no policy is"
            raise _TooMuchError(text, event.start_mark)
        if self._values > _MOST_VALUES:
            text = f"there are more than {_MOST_VALUES} values up to here: write fewer"
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
    problem = " ".join(str(error.problem or error.context or "it cannot be read").split())
    if "'\\t'" in problem:
        return "a tab stands here: YAML is indented with spaces"
    if "but found another document" in problem:
        return "a second document begins here: write one policy into one file"
    if "cannot start any token" in problem or "found undefined" in problem:
        return f"this is no YAML: {problem}: put the text in quotes"
    # In the words of whoever writes a file: what a parser calls blocks and streams is an indent, and its end.
    if "<stream end>" in problem or "unexpected end of stream" in problem:
        return "this is no YAML: the file ends before a bracket or a quote is closed: close it"
    if "expected <block end>" in problem:
        return "this is no YAML: what begins here is indented otherwise than its neighbours: indent it as they are"
    if "mapping values are not allowed" in problem:
        return "this is no YAML: no key may stand here: begin a line with it, or put the text in quotes"
    return f"this is no YAML: {problem}"


def _unreadable(text: str, error: Any) -> Mistake:
    """A character that YAML has no place for."""
    before = text[: error.position]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    # The number of the character, or in some cases the character.
    sign = error.character if isinstance(error.character, int) else ord(error.character)
    return Mistake(line + 1, column + 1, f"the character U+{sign:04X} is none of a text: take it out")
