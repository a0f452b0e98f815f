"""What upstream's types leave out of an object because it is empty."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object


def drop_empty_parts(value: Any) -> None:
    """Through and through: lists and label maps that are empty are left out, as upstream does."""
    if isinstance(value, list):
        for item in value:
            drop_empty_parts(item)
    elif isinstance(value, dict):
        for field in [
            name for name, part in value.items() if part == [] or (name == "matchLabels" and not part)
        ]:
            del value[field]
        for part in value.values():
            drop_empty_parts(part)


def drop_empty(obj: Object, keep: frozenset[str]) -> None:
    """Remove what upstream's types leave out when empty: all but the fields that are pointers there."""
    if all(obj.values()):
        return
    for field in [field for field, value in obj.items() if not value and field not in keep]:
        del obj[field]
