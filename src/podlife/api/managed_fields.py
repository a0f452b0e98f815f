"""Which manager set a field, from an object's managedFields. Pure; anything may be missing."""

from __future__ import annotations

import json
from typing import Any


def finalizer_setter(metadata: dict[str, Any], finalizer: str) -> tuple[str, str]:
    """The manager that set the finalizer and the time of its last write; "" if unknown."""
    # In managedFields a member of a set is its JSON after "v:".
    key = f"v:{json.dumps(finalizer, ensure_ascii=False)}"
    for entry in metadata.get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if key in (fields.get("f:finalizers") or {}):
            return str(entry.get("manager") or ""), str(entry.get("time") or "")
    return "", ""


def field_setter(metadata: dict[str, Any], *path: str) -> tuple[str, str]:
    """The manager that last wrote a field, given as `f:spec`, `f:replicas`, and when; "" if unknown."""
    owners = [entry for entry in metadata.get("managedFields") or () if _has(entry.get("fieldsV1"), path)]
    if not owners:
        return "", ""
    last = max(owners, key=lambda entry: str(entry.get("time") or ""))
    return str(last.get("manager") or ""), str(last.get("time") or "")


def _has(fields: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(fields, dict) or name not in fields:
            return False
        fields = fields[name]
    return True
