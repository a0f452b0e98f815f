"""Converts YAML to JSON.

YAML allows input that is expensive to read: nesting that overflows the stack of a C parser, aliases that expand
without end, base-60 numbers with quadratic cost. Parser events are therefore checked first: depth and number of
values are bounded and aliases are refused. Base-60 numbers (`12:30`) are text, as in Kubernetes' own parser.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from podlife.api.codec import MOST_VALUES, encode

# Deeper than any object of Kubernetes, and far from the end of any stack.
_MOST_DEPTH = 256
# A field is two of them.
_MOST_VALUES = 2 * MOST_VALUES
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@cache
def safe_loader() -> Any:
    """A class of PyYAML's that makes plain data, in time that grows with the text and no faster."""
    import yaml

    # Both are safe loaders; the one in C is not always built.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("SafeLoader", (base,), {})

    def number(self: Any, node: Any) -> Any:
        text = str(self.construct_scalar(node))
        return text if ":" in text else base.yaml_constructors[node.tag](self, node)

    for tag in _NUMBERS:
        loader.add_constructor(tag, number)
    return loader


def yaml_to_json(data: bytes, *, most_values: int = _MOST_VALUES) -> bytes:
    """The one document in the text, as JSON; raises ValueError (with a reason) when it cannot be read."""
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
                raise ValueError(f"aliases are not taken here: write out what *{event.anchor} stands for")
    finally:
        loader.dispose()
