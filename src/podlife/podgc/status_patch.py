"""The status that a pod gets before it is deleted, and the patch that writes it. Pure.

A pod that has not ended is made Failed, so that whoever waits for its end sees one; an orphan also gets the condition
that says who disrupted it. The patch carries only what changes, and the UID and version of the pod it was decided
for: a pod that is another by now, or has moved on, is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podlife.api.codec import Object, format_time
from podlife.api.patch import create_two_way_merge_patch
from podlife.podgc.settings import Cause, FeatureGates, Reason
from podlife.podgc.views import DISRUPTION_TARGET, Pod

__all__ = ["marking_patch", "status_patch", "with_condition"]


def marking_patch(pod: Pod, reason: Cause, gates: FeatureGates, now: datetime) -> Object | None:
    """The patch that marks the pod as Failed (GC-90); None when there is nothing to change."""
    old = _known_status(pod)
    new: Object = {**old, "phase": "Failed"}
    if pod.metadata.generation:
        new["observedGeneration"] = pod.metadata.generation
    if reason is Reason.ORPHANED and gates.pod_disruption_conditions:
        new["conditions"] = with_condition(old.get("conditions", ()), _node_is_gone(pod, now))
    patch = status_patch(pod.metadata.uid, old, new)
    if patch is not None:
        patch["metadata"]["resourceVersion"] = pod.metadata.resource_version
    return patch


def _known_status(pod: Pod) -> Object:
    """What the collector knows of it: of most conditions only that they are there, which is enough to keep them."""
    status = pod.status
    known = {each.type: msgspec.to_builtins(each) for each in status.conditions}
    fields: Object = {
        "phase": status.phase,
        "observedGeneration": status.observed_generation,
        "conditions": [known.get(type_, {"type": type_}) for type_ in status.condition_types],
    }
    return {field: value for field, value in fields.items() if value}


def _node_is_gone(pod: Pod, now: datetime) -> Object:
    """GC-55."""
    condition: Object = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": format_time(now),
    }
    if pod.metadata.generation:
        condition["observedGeneration"] = pod.metadata.generation
    return condition


def with_condition(conditions: Sequence[Object], condition: Object) -> list[Object]:
    """The conditions with this one put in or replaced; while its status stays, so does its time (GC-100)."""
    result = list(conditions)
    for place, known in enumerate(result):
        if known.get("type") == condition["type"]:
            if known.get("status") == condition["status"] and "lastTransitionTime" in known:
                condition = {**condition, "lastTransitionTime": known["lastTransitionTime"]}
            result[place] = condition
            return result
    return [*result, condition]


def status_patch(uid: str, old: Object, new: Object) -> Object | None:
    """A strategic merge patch from one status to another that only fits the pod with this UID (GC-92, GC-95);
    None when they are the same (GC-96)."""
    patch = create_two_way_merge_patch({"status": old}, {"status": new}, "v1", "Pod")
    if not patch:
        return None
    return {"metadata": {"uid": uid}, **patch}
