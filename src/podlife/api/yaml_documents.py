"""YAML in, as the JSON that it means.

YAML can say more than JSON, and say it in ways that cost a reader everything: nesting that overflows the stack of
a parser written in C, and anchors that make a short document an endless one. So the events of a document are
looked at before anything is built from them: it has a bounded depth and no aliases.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podlife.api.codec import encode

__all__ = ["yaml_to_json"]

# Deeper than any object of Kubernetes, and far from the end of any stack.
_MOST_DEPTH = 256


def yaml_to_json(data: bytes) -> bytes:
    """The one document in the text, as JSON; raises ValueError (with a reason) when it cannot be read."""
    import yaml

    # Both are safe loaders; the one in C is not always built.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, loader(data))
        return encode(yaml.load(data, Loader=loader))  # noqa: S506 - a safe loader, see above
    except (yaml.YAMLError, RecursionError, TypeError, OverflowError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _check_events(yaml: Any, loader: Any) -> None:
    depth = 0
    try:
        while loader.check_event():
            event = loader.get_event()
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
