"""The status patch for the API server, from the kubelet's status and the server's (SM-15, SM-20 to SM-26). Pure.

A terminal phase is withheld while a container of the pod could still run: readers of the phase rely on everything
having stopped. Fields of other writers are preserved. A patch contains only changes, and the pod's UID as
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
    not_ready_terminal,
    with_condition,
)
from podlife.kubelet.status.normalize import FOREIGN, KEPT, has_same_meaning, with_transition_times

_PHASE_FIELDS = ("phase", "reason", "message")


def merged_status(
    pod: Pod, old: Mapping[str, Any], new: Mapping[str, Any], *, could_run: bool, now: datetime
) -> Object:
    """`old` is the API server's status, `new` the kubelet's."""
    ends = not is_terminal_phase(old.get("phase")) and is_terminal_phase(new.get("phase"))
    merged = {key: value for key, value in new.items() if key not in FOREIGN}
    merged.update({key: old[key] for key in FOREIGN if key in old})
    merged.update({key: old[key] for key in KEPT if key in old and key not in new})
    if ends and could_run:
        merged = {key: value for key, value in merged.items() if key not in _PHASE_FIELDS}
        merged.update({key: old[key] for key in _PHASE_FIELDS if key in old})
    merged["conditions"] = _conditions(old, new, with_disruption=ends and not could_run, now=now)
    phase = merged.get("phase") or ""
    if is_terminal_phase(phase) and any(_is_true(merged, each) for each in ("Ready", "ContainersReady")):
        for type_ in ("ContainersReady", "Ready"):
            [timed] = with_transition_times([not_ready_terminal(pod, type_, phase)], merged, now)
            merged["conditions"] = with_condition(merged["conditions"], timed)
    return merged


def _conditions(
    old: Mapping[str, Any], new: Mapping[str, Any], *, with_disruption: bool, now: datetime
) -> list[Object]:
    conditions = [dict(each) for each in old.get("conditions") or () if not is_owned_by_kubelet(each["type"])]
    for condition in new.get("conditions") or ():
        if is_owned_by_kubelet(condition["type"]):
            conditions.append(dict(condition))
        elif condition["type"] == DISRUPTION_TARGET and with_disruption:
            [timed] = with_transition_times([condition], old, now)
            conditions = with_condition(conditions, timed)
    return conditions


def _is_true(status: Mapping[str, Any], type_: str) -> bool:
    return (condition_of(status, type_) or {}).get("status") == "True"


def status_patch(uid: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Object | None:
    """A strategic merge patch; None if nothing changed."""
    wanted = {key: _old_if_equal(key, old.get(key), value) for key, value in new.items() if value}
    # An empty field is not worth a write.
    wanted.update({key: value for key, value in old.items() if not value and key not in wanted})
    changes = create_two_way_merge_patch({"status": dict(old)}, {"status": wanted}, "v1", "Pod")
    return {"metadata": {"uid": uid}, **changes} if changes else None


def _old_if_equal(key: str, old: Any, new: Any) -> Any:
    """The old value if the new one is equivalent."""
    if key == "conditions":
        return _in_old_order(old or (), new)
    return old if old is not None and has_same_meaning(old, new) else new


def _in_old_order(old: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[Any]:
    """In the API server's order, since the order of conditions has no meaning."""
    by_type = {each["type"]: each for each in new}
    known = {each["type"]: each for each in old}
    kept = [
        each if has_same_meaning(each, by_type[type_]) else by_type[type_]
        for type_, each in known.items()
        if type_ in by_type
    ]
    return [*kept, *(each for type_, each in by_type.items() if type_ not in known)]
