"""Converts YAML to JSON.

YAML allows input that is expensive to parse: nesting that overflows the stack of a C parser, aliases that expand
without end, base-60 numbers with quadratic cost. Parser events are therefore checked first: depth and number of
values are bounded and aliases are rejected. Base-60 numbers (`12:30`) are text, as in Kubernetes' own parser.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from podlife.api.codec import MOST_VALUES, encode

# Deeper than any Kubernetes object, and far below the stack limit.
_MOST_DEPTH = 256
# A field counts as two values.
_MOST_VALUES = 2 * MOST_VALUES
_MOST_DUPLICATES = 100
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@cache
def safe_loader() -> Any:
    """A PyYAML loader for plain data, in linear time."""
    import yaml

    # Both are safe loaders; the C version is not always available.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("SafeLoader", (base,), {})

    def number(self: Any, node: Any) -> Any:
        text = str(self.construct_scalar(node))
        return text if ":" in text else base.yaml_constructors[node.tag](self, node)

    for tag in _NUMBERS:
        loader.add_constructor(tag, number)
    return loader


def yaml_to_json(data: bytes, *, most_values: int = _MOST_VALUES) -> bytes:
    """Convert the only document to JSON; raises ValueError with a reason. Of equal keys the last counts."""
    return read_yaml(data, most_values=most_values)[0]


def read_yaml(data: bytes, *, most_values: int = _MOST_VALUES) -> tuple[bytes, list[str]]:
    """As `yaml_to_json`, and which keys occur twice in a map, in the words of Kubernetes' own parser."""
    import yaml

    loader = safe_loader()
    try:
        duplicates = _check_events(yaml, loader(data), most_values)
        return encode(yaml.load(data, Loader=loader)), duplicates  # noqa: S506 - a safe loader, see above
    except (yaml.YAMLError, RecursionError, TypeError, OverflowError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _check_events(yaml: Any, loader: Any, most_values: int) -> list[str]:
    """Raise ValueError for what would be too expensive to read; returns keys that a map has twice."""
    values = 0
    keys = _Keys()
    try:
        while loader.check_event():
            event = loader.get_event()
            values += isinstance(event, yaml.NodeEvent)
            if values > most_values:
                raise ValueError(f"the YAML holds more than {most_values} values: write it as JSON")
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"aliases are not supported: replace *{event.anchor} by its value")
            if isinstance(event, yaml.CollectionEndEvent):
                keys.end()
            elif isinstance(event, yaml.ScalarEvent):
                keys.scalar(event.value, event.start_mark.line + 1)
            elif isinstance(event, yaml.CollectionStartEvent):
                keys.begin(is_map=isinstance(event, yaml.MappingStartEvent))
                if keys.depth > _MOST_DEPTH:
                    raise ValueError(f"the YAML is nested more than {_MOST_DEPTH} levels deep")
    finally:
        loader.dispose()
    return keys.duplicates


class _Keys:
    """The keys of the maps around the current event."""

    def __init__(self) -> None:
        # Of a list, None.
        self._open: list[set[str] | None] = []
        # Whether a key comes next, for each.
        self._is_key: list[bool] = []
        self.duplicates: list[str] = []

    @property
    def depth(self) -> int:
        return len(self._open)

    def begin(self, *, is_map: bool) -> None:
        self._pass_node()
        self._open.append(set() if is_map else None)
        self._is_key.append(is_map)

    def end(self) -> None:
        self._open.pop()
        self._is_key.pop()

    def scalar(self, text: str, line: int) -> None:
        if self._open and (found := self._open[-1]) is not None and self._is_key[-1]:
            if text in found and len(self.duplicates) < _MOST_DUPLICATES:
                self.duplicates.append(f"line {line}: key {encode(text).decode()} already set in map")
            found.add(text)
        self._pass_node()

    def _pass_node(self) -> None:
        if self._open and self._open[-1] is not None:
            self._is_key[-1] = not self._is_key[-1]
