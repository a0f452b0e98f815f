"""JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces."""

from __future__ import annotations

from typing import Any

from podlife.api.patch.errors import go_kind, malformed


def merge_patch(obj: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The object with the patch merged in. Only what lies on the way to a change is copied. Raises PatchError."""
    if patch is None:
        raise malformed("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise malformed(
            f"error decoding patch: json: cannot unmarshal {go_kind(patch)} "
            "into Go value of type map[string]interface {}"
        )
    return _merged(obj, patch)


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            current = result.get(key)
            result[key] = _merged(current if isinstance(current, dict) else {}, value)
        else:
            result[key] = value
    return result
