"""The patch of a status for the API server (SM-15): only what changed, with its pod's UID as precondition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.api.patch import create_two_way_merge_patch
from podlife.kubelet.status.normalize import has_same_meaning


def status_patch(uid: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Object | None:
    """A strategic merge patch; None when the API server knows all of it."""
    wanted = {key: _as_told(key, old.get(key), value) for key, value in new.items() if value}
    # A field with nothing in it is no reason to write.
    wanted.update({key: value for key, value in old.items() if not value and key not in wanted})
    changes = create_two_way_merge_patch({"status": dict(old)}, {"status": wanted}, "v1", "Pod")
    return {"metadata": {"uid": uid}, **changes} if changes else None


def _as_told(key: str, old: Any, new: Any) -> Any:
    """The old value where the new one says the same in other words."""
    if key == "conditions":
        return _conditions(old or (), new)
    return old if old is not None and has_same_meaning(old, new) else new


def _conditions(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[Any]:
    """In the order of the API server: that of conditions says nothing."""
    by_type = {each["type"]: each for each in new}
    known = {each["type"]: each for each in old}
    kept = [
        each if has_same_meaning(each, by_type[type_]) else by_type[type_]
        for type_, each in known.items()
        if type_ in by_type
    ]
    return [*kept, *(each for type_, each in by_type.items() if type_ not in known)]
