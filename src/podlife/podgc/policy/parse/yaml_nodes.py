"""The YAML of a policy file, and its errors.

`compose` returns one document of bounded depth and size, without aliases and tags, so a short text cannot expand.
`values` interprets its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from podlife.api import yaml_fields
from podlife.api.yaml_fields import Diagnostics, Mistake, YamlNode
from podlife.errors import ConfigError

MAX_SHOWN = 20
# Deeper than any policy, and far below the recursion limit.
_MAX_DEPTH = 20
# More than any policy has, and parsed within seconds: a running collector parses its policy too.
_MAX_VALUES = 50_000
# The tag of a value whose error was reported by `compose`.
_REPORTED = "podlife/reported"


class PolicyError(ConfigError):
    """An invalid policy. The message has one line per error, in the order of the file."""

    def __init__(self, name: str, mistakes: Iterable[Mistake]) -> None:
        self.name = name
        # The same error is reported once per location.
        self.mistakes = tuple(sorted(set(mistakes)))
        lines = [mistake.at(name) for mistake in self.mistakes[:MAX_SHOWN]]
        if (more := len(self.mistakes) - MAX_SHOWN) > 0:
            lines.append(f"{name}: and {more} more {'error' if more == 1 else 'errors'}")
        super().__init__("\n".join(lines))


def is_reported(node: YamlNode) -> bool:
    """Whether an error of this value was reported already."""
    return bool(node.tag == _REPORTED)


def compose(text: str, notes: Diagnostics) -> YamlNode | None:
    """The only document of the text; None if there is none or the YAML is invalid, which is reported."""
    return yaml_fields.compose(text, notes, _problem, lambda stream: _Loader(stream, notes))


class _UnsupportedError(yaml.MarkedYAMLError):
    """Raised here, not by PyYAML; `problem` is phrased for the author of the file."""


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str, notes: Diagnostics) -> None:
        super().__init__(text)
        self._notes = notes
        self._depth = 0
        self._values = 0

    def check_printable(self, data: str) -> None:
        if match := self.NON_PRINTABLE.search(data):
            before = data[: match.start()]
            line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
            mark = yaml.Mark("", match.start(), line, column, None, 0)
            raise _UnsupportedError(None, None, f"invalid character U+{ord(match[0]):04X}: remove it", mark)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.get_event()  # type: ignore[no-untyped-call]
            self._notes.at(
                event.start_mark, f"aliases are not supported: replace *{event.anchor} with its value"
            )
            return yaml.ScalarNode(_REPORTED, "", event.start_mark, event.end_mark)
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag is not None:
            self._notes.at(event.start_mark, f"tag {_short(event.tag)!r} is not supported: remove it")
            event.tag, event.implicit = None, _untagged(event)
        # Duplicate anchors are harmless, because aliases are refused.
        event.anchor = None
        self._depth += 1
        self._values += 1
        if self._depth > _MAX_DEPTH:
            text = f"nesting exceeds the maximum depth of {_MAX_DEPTH}"
            raise _UnsupportedError(None, None, text, event.start_mark)
        if self._values > _MAX_VALUES:
            text = f"policy exceeds the maximum of {_MAX_VALUES} values"
            raise _UnsupportedError(None, None, text, event.start_mark)
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
    if isinstance(error, _UnsupportedError):
        return problem
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
