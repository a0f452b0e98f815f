"""The patch of a status for the API server: what of the node's status goes there, given what is there (SM-15, SM-20 to
SM-26). Pure.

A terminal phase is withheld while something of the pod could still run: a reader of the phase may rely on everything
having stopped. What others write stays as they wrote it. A patch has only what changed, with its pod's UID as
precondition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from podlife.api.codec import Object
from podlife.api.patch import create_two_way_merge_patch
from podlife.kubelet.pod_fields import Pod, condition_of, is_terminal_phase
from podlife.kubelet.status.conditions import (
    DISRUPTION_TARGET,
    is_owned_by_kubelet,
    not_ready_any_more,
    with_condition,
)
from podlife.kubelet.status.normalize import FOREIGN, KEPT, has_same_meaning, with_transition_times

_OF_THE_PHASE = ("phase", "reason", "message")


def merged_status(
    pod: Pod, old: Mapping[str, Any], new: Mapping[str, Any], *, could_run: bool, now: datetime
) -> Object:
    """`old` is the API server's, `new` the node's own."""
    ends = not is_terminal_phase(old.get("phase")) and is_terminal_phase(new.get("phase"))
    merged = {key: value for key, value in new.items() if key not in FOREIGN}
    merged.update({key: old[key] for key in FOREIGN if key in old})
    merged.update({key: old[key] for key in KEPT if key in old and key not in new})
    if ends and could_run:
        merged = {key: value for key, value in merged.items() if key not in _OF_THE_PHASE}
        merged.update({key: old[key] for key in _OF_THE_PHASE if key in old})
    merged["conditions"] = _conditions(old, new, is_disruption_told=ends and not could_run, now=now)
    phase = merged.get("phase") or ""
    if is_terminal_phase(phase) and any(_is_true(merged, each) for each in ("Ready", "ContainersReady")):
        for type_ in ("ContainersReady", "Ready"):
            [timed] = with_transition_times([not_ready_any_more(pod, type_, phase)], merged, now)
            merged["conditions"] = with_condition(merged["conditions"], timed)
    return merged


def _conditions(
    old: Mapping[str, Any], new: Mapping[str, Any], *, is_disruption_told: bool, now: datetime
) -> list[Object]:
    conditions = [dict(each) for each in old.get("conditions") or () if not is_owned_by_kubelet(each["type"])]
    for condition in new.get("conditions") or ():
        if is_owned_by_kubelet(condition["type"]):
            conditions.append(dict(condition))
        elif condition["type"] == DISRUPTION_TARGET and is_disruption_told:
            [timed] = with_transition_times([condition], old, now)
            conditions = with_condition(conditions, timed)
    return conditions


def _is_true(status: Mapping[str, Any], type_: str) -> bool:
    return (condition_of(status, type_) or {}).get("status") == "True"


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
        return _conditions_as_told(old or (), new)
    return old if old is not None and has_same_meaning(old, new) else new


def _conditions_as_told(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[Any]:
    """In the order of the API server: that of conditions says nothing."""
    by_type = {each["type"]: each for each in new}
    known = {each["type"]: each for each in old}
    kept = [
        each if has_same_meaning(each, by_type[type_]) else by_type[type_]
        for type_, each in known.items()
        if type_ in by_type
    ]
    return [*kept, *(each for type_, each in by_type.items() if type_ not in known)]
