"""The status patch that marks a pod Failed before its deletion. Pure.

A pod that has not ended is marked Failed, so that watchers observe an end; an orphan also gets a DisruptionTarget
condition. The patch has only the changes, and the UID and resource version of the pod that was evaluated, so it does
not apply to another or a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podlife.api.codec import Object, format_time
from podlife.api.patch import create_two_way_merge_patch
from podlife.podgc.reasons import Cause, Reason
from podlife.podgc.settings import FeatureGates
from podlife.podgc.views import DISRUPTION_TARGET, Pod


def marking_patch(pod: Pod, reason: Cause, gates: FeatureGates, now: datetime) -> Object | None:
    """The patch that marks the pod Failed (GC-90); None if there is nothing to change."""
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
    """The known status: for most conditions only the type, which is enough to preserve them."""
    status = pod.status
    known = {each.type: msgspec.to_builtins(each) for each in status.conditions}
    fields: Object = {
        "phase": status.phase,
        "observedGeneration": status.observed_generation,
        "conditions": [known.get(type_, {"type": type_}) for type_ in status.condition_types],
    }
    return {field: value for field, value in fields.items() if value}


def _node_is_gone(pod: Pod, now: datetime) -> Object:
    """The condition of an orphan, as upstream writes it (GC-55)."""
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
    """The conditions with this one added or replaced; its time is kept while its status is the same (GC-100)."""
    result = list(conditions)
    for place, known in enumerate(result):
        if known.get("type") == condition["type"]:
            if known.get("status") == condition["status"] and "lastTransitionTime" in known:
                condition = {**condition, "lastTransitionTime": known["lastTransitionTime"]}
            result[place] = condition
            return result
    return [*result, condition]


def status_patch(uid: str, old: Object, new: Object) -> Object | None:
    """A strategic merge patch between two statuses that applies only to the pod with this UID (GC-92, GC-95); None if
    they are equal (GC-96)."""
    patch = create_two_way_merge_patch({"status": old}, {"status": new}, "v1", "Pod")
    if not patch:
        return None
    return {"metadata": {"uid": uid}, **patch}
