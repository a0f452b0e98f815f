"""What of a node's status goes to the API server, given what is there (SM-20 to SM-26). Pure.

A terminal phase is withheld while something of the pod could still run: a reader of the phase may rely on everything
having stopped. What others write stays as they wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import Pod, condition_of, is_terminal_phase
from podlife.kubelet.status.conditions import (
    DISRUPTION_TARGET,
    is_owned_by_kubelet,
    not_ready_any_more,
    with_condition,
)
from podlife.kubelet.status.normalize import FOREIGN, KEPT, with_transition_times

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
            _force(pod, merged, type_, now)
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


def _force(pod: Pod, status: Object, type_: str, now: datetime) -> None:
    [timed] = with_transition_times([not_ready_any_more(pod, type_, status["phase"])], status, now)
    status["conditions"] = with_condition(status["conditions"], timed)
