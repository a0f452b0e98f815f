"""Values as Go's `%v` prints them, which upstream does in the messages about strategic patches."""

from __future__ import annotations

from typing import Any


def go_format(value: Any) -> str:
    """`{"b": [1, "x"], "a": null}` is `map[a:<nil> b:[1 x]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_format(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_format, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)
