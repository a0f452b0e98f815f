"""YAML values that know their line, so that an error names its location.

Errors are collected and reading goes on: one pass reports all mistakes of a file. What the values mean is left to the
caller.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from podlife.errors import ConfigError

T = TypeVar("T")


class YamlNode(Protocol):
    """A node of the YAML: `id` is scalar, sequence or mapping, and says what its value is."""

    id: str
    value: Any
    start_mark: Any


Field = Callable[["YamlReader", YamlNode, str], Any]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_MOST_SECONDS = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class ScenarioMistake:
    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def compose(text: str) -> YamlNode | None:
    """The one document in the text, None where there is nothing; raises ConfigError with its line."""
    import yaml

    try:
        # The loader in Python: one in C overflows its stack where this one says that it is too deep.
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise ConfigError(f"{line}invalid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"invalid YAML: {' '.join(str(error).split()) or 'it is too deep'}") from None
    found: YamlNode | None = node
    return found


class YamlReader:
    """Each method gives a value, or None after it has noted what is wrong. `path` is how the value is called."""

    def __init__(self) -> None:
        self.mistakes: list[ScenarioMistake] = []

    def note(self, node: YamlNode, text: str) -> None:
        self.mistakes.append(ScenarioMistake(node.start_mark.line + 1, text))

    def fields(
        self, node: YamlNode, path: str, known: Mapping[str, Field], required: Collection[str] = ()
    ) -> dict[str, Any]:
        """The values of a mapping by their keys; without those that are wrong."""
        values: dict[str, Any] = {}
        if node.id != "mapping":
            self.note(node, f"{path or 'this'} must be a mapping with {', '.join(known)}")
            return values
        seen: set[str] = set()
        for key_node, value_node in node.value:
            key = key_node.value if key_node.id == "scalar" else ""
            where = f"{path}.{key}" if path else key
            if key in seen:
                self.note(key_node, f"{where} is there twice: leave one of them out")
            elif key not in known:
                close = difflib.get_close_matches(key, known, 1)
                meant = f"did you mean {close[0]}?" if close else f"there is {', '.join(known)}"
                self.note(key_node, f"{where} is not known: {meant}")
            elif (value := known[key](self, value_node, where)) is not None:
                values[key] = value
            seen.add(key)
        for key in required:
            if key not in seen:
                self.note(node, f"{path or 'this'} needs {key}")
        return values

    def items(self, node: YamlNode, path: str, read: Callable[[YamlNode, str], T | None]) -> list[T]:
        """What `read` makes of each item of a list."""
        if node.id != "sequence":
            self.note(node, f"{path} must be a list")
            return []
        found = [read(each, f"{path}[{number}]") for number, each in enumerate(node.value)]
        return [each for each in found if each is not None]

    def text(self, node: YamlNode, path: str) -> str | None:
        if node.id != "scalar":
            self.note(node, f"{path} must be a text")
            return None
        return str(node.value)

    def texts(self, node: YamlNode, path: str) -> tuple[str, ...] | None:
        """Several, or one without the brackets."""
        if node.id == "scalar":
            return (str(node.value),)
        return tuple(self.items(node, path, self.text))

    def whole_number(self, node: YamlNode, path: str, least: int, most: int | None = None) -> int | None:
        text = node.value if node.id == "scalar" else ""
        digits = text.removeprefix("-")
        # More digits than this are beyond every bound, and slow to read.
        number = int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
        if number is None or number < least or (most is not None and number > most):
            bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
            self.note(node, f"{path} must be a whole number {bounds}")
            return None
        return number

    def share(self, node: YamlNode, path: str) -> float | None:
        """A part of all: 0.25 or 25%."""
        text = node.value.strip() if node.id == "scalar" else ""
        digits = text.removesuffix("%")
        number = float(digits) / (100 if digits != text else 1) if _NUMBER.fullmatch(digits) else math.nan
        if not 0.0 <= number <= 1.0:
            self.note(node, f"{path} must be a part of all: write 0.25 or 25%")
            return None
        return number

    def truth(self, node: YamlNode, path: str) -> bool | None:
        if node.id != "scalar" or node.value.lower() not in ("true", "false"):
            self.note(node, f"{path} must be true or false")
            return None
        return bool(node.value.lower() == "true")

    def seconds(self, node: YamlNode, path: str) -> float | None:
        """A length of time: 40s, 1m30s, 500ms, or a number of seconds."""
        text = node.value.strip() if node.id == "scalar" else ""
        if _NUMBER.fullmatch(text):
            found = float(text)
        elif _DURATION.fullmatch(text):
            found = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        else:
            found = math.nan
        if not found <= _MOST_SECONDS:
            self.note(node, f"{path} must be a length of time: write 40s, 1m30s or 500ms")
            return None
        return found
