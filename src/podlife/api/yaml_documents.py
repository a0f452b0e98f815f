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
    """Convert the only document to JSON; raises ValueError with a reason."""
    import yaml

    loader = safe_loader()
    try:
        _check_events(yaml, loader(data), most_values)
        return encode(yaml.load(data, Loader=loader))  # noqa: S506 - a safe loader, see above
    except (yaml.YAMLError, RecursionError, TypeError, OverflowError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _check_events(yaml: Any, loader: Any, most_values: int) -> None:
    depth = values = 0
    try:
        while loader.check_event():
            event = loader.get_event()
            values += isinstance(event, yaml.NodeEvent)
            if values > most_values:
                raise ValueError(f"the YAML holds more than {most_values} values: write it as JSON")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MOST_DEPTH:
                    raise ValueError(f"the YAML is nested more than {_MOST_DEPTH} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.AliasEvent):
                raise ValueError(f"aliases are not supported: replace *{event.anchor} by its value")
    finally:
        loader.dispose()


def yaml_duplicates(data: bytes) -> list[str]:
    """`line 3: key "x" already set in map` for every key that a map of a valid document has twice."""
    import yaml

    loader = safe_loader()(data)
    found: list[str] = []
    # The keys of each open map, None for a list; and whether the next value is a key.
    open_: list[set[str] | None] = []
    is_key = [False]
    try:
        while loader.check_event() and len(found) < _MOST_DUPLICATES:
            event = loader.get_event()
            if isinstance(event, yaml.CollectionEndEvent):
                open_.pop()
                is_key.pop()
            elif isinstance(event, yaml.NodeEvent):
                keys = open_[-1] if open_ else None
                if keys is not None:
                    if is_key[-1] and isinstance(event, yaml.ScalarEvent):
                        if event.value in keys:
                            mark: Any = event.start_mark
                            found.append(f'line {mark.line + 1}: key "{event.value}" already set in map')
                        keys.add(event.value)
                    is_key[-1] = not is_key[-1]
                if isinstance(event, yaml.CollectionStartEvent):
                    is_map = isinstance(event, yaml.MappingStartEvent)
                    open_.append(set() if is_map else None)
                    is_key.append(is_map)
    finally:
        loader.dispose()
    return found
