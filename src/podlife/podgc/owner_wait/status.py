"""Whether the owner of a finished pod has seen its end. Pure: the pod and what the owner says go in, words come out.

What counts depends on who the owner is. A Job and an Argo Workflow keep accounts of their pods, and those are read; of
any other kind it is enough that it has ended itself, and before that nobody can tell. ReplicaSets and their like keep
no account of pods that have ended (they count the living), so that with such a pod nothing is lost that they wait for.
Where something cannot be told for certain the answer is "not yet": who asks has a bound for how long.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata, OwnerReference, controller_of
from podlife.podgc.policy.model import OWNER_HAS_SEEN

__all__ = [
    "TRACKING",
    "EndedPod",
    "Outlook",
    "ended_at",
    "is_told",
    "outlook_of",
    "owner_to_ask",
    "pending_on",
    "still_waiting",
]

TRACKING = "batch.kubernetes.io/job-tracking"
# On pods of an Argo Workflow: a finalizer until their state is noted, a label once they are done with.
_ARGO_FINALIZER = "workflows.argoproj.io/status"
_ARGO_COMPLETED = "workflows.argoproj.io/completed"
_ARGO_NODE = "workflows.argoproj.io/node-id"
_FINALIZERS = {
    TRACKING: "its Job has not counted it yet",
    _ARGO_FINALIZER: "its Workflow has not noted its end yet",
}
# Those who count living pods only; a Node owns the pods of its own folder, and has no end to wait for.
_COUNT_THE_LIVING = frozenset(
    [
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("", "Node"),
        ("", "ReplicationController"),
    ]
)
_ENDED_WORDS = frozenset(
    [
        "aborted",
        "cancelled",
        "canceled",
        "complete",
        "completed",
        "done",
        "expired",
        "failed",
        "finished",
        "succeeded",
        "success",
        "terminated",
        "timedout",
    ]
)
# Where kinds that run something to its end say how far it is: Spark, Ray, Volcano, Flyte and others.
_PHASES = (
    ("phase",),
    ("state",),
    ("state", "phase"),
    ("applicationState", "state"),
    ("jobStatus",),
    ("jobDeploymentStatus",),
)
# Conditions of a pod whose change tells of its end.
_ENDINGS = ("Ready", "ContainersReady", "DisruptionTarget")
_END_TIMES = ("completionTime", "completionTimestamp", "completedAt", "finishedAt", "endTime")
_END_CONDITIONS = frozenset(("complete", "completed", "succeeded", "failed", "finished"))
# What is not ready for one of these reasons has ended. One that has failed may only be about to try again.
_NOT_READY_ANY_MORE = frozenset(("complete", "completed", "finished", "succeeded"))
# Here a condition that is False is an end as well: Succeeded is Unknown for as long as it runs.
_THREE_VALUED = "tekton.dev"


class _PodMetadata(Metadata):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Terminated(msgspec.Struct, rename="camel"):
    finished_at: datetime | None = None


class _State(msgspec.Struct):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, rename="camel"):
    state: _State | None = None
    last_state: _State | None = None

    @property
    def ended_at(self) -> datetime | None:
        """Its last time."""
        for state in (self.state, self.last_state):
            if state is not None and state.terminated is not None:
                return state.terminated.finished_at
        return None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    start_time: datetime | None = None
    init_container_statuses: tuple[_Container, ...] | None = None
    container_statuses: tuple[_Container, ...] | None = None
    conditions: tuple[_Condition, ...] | None = None


class EndedPod(msgspec.Struct):
    """Of a pod what tells whether its owner has seen it end."""

    metadata: _PodMetadata
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an owner says of its pods, as little as is needed to answer for each of them.

    `end` is that it has ended itself, in words: whatever it wanted to know it knows. Else `uncounted` are the UIDs of
    pods that it is still about to count and has no other account of (None: it keeps none), `noted` the pods whose end
    it has written down, by the name it has for them (None: it writes down none)."""

    end: str = ""
    uncounted: frozenset[str] | None = None
    noted: frozenset[str] | None = None


def ended_at(pod: EndedPod) -> datetime:
    """The latest moment at which it may have ended, as the rules reckon it: waiting runs from there."""
    status, metadata = pod.status, pod.metadata
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    ends = [each.ended_at for each in containers]
    ends += [each.last_transition_time for each in status.conditions or () if each.type in _ENDINGS]
    known = [each for each in ends if each is not None]
    if not known:
        known = [each for each in (metadata.deletion_timestamp, status.start_time) if each is not None]
    if metadata.creation_timestamp is not None:
        # A node's clock may be far behind.
        known.append(metadata.creation_timestamp)
    return max(known, default=datetime.min.replace(tzinfo=UTC))


def pending_on(pod: EndedPod) -> str:
    """What of the pod itself says that its owner has not seen the end; "" where nothing does."""
    if is_told(pod):
        return ""
    return next((_FINALIZERS[each] for each in pod.metadata.finalizers if each in _FINALIZERS), "")


def is_told(pod: EndedPod) -> bool:
    """Whether the owner has said so on the pod."""
    metadata = pod.metadata
    said = (metadata.annotations or {}).get(OWNER_HAS_SEEN)
    if said is not None and said.strip().lower() != "false":
        return True
    return (metadata.labels or {}).get(
        _ARGO_COMPLETED
    ) == "true" and _ARGO_FINALIZER not in metadata.finalizers


def owner_to_ask(pod: EndedPod) -> OwnerReference | None:
    """Whose word is needed; None where there is nobody who waits for the end."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return None
    group = owner.api_version.rpartition("/")[0]
    return None if (group, owner.kind) in _COUNT_THE_LIVING else owner


def outlook_of(owner: Object) -> Outlook:
    group, kind = str(owner.get("apiVersion") or "").rpartition("/")[0], str(owner.get("kind") or "")
    status = _part(owner, "status")
    if (group, kind) == ("batch", "Job"):
        return _job(status)
    if (group, kind) == ("argoproj.io", "Workflow"):
        return _workflow(status)
    return Outlook(_end(owner, status, is_three_valued=group == _THREE_VALUED))


def still_waiting(outlook: Outlook, pod: EndedPod) -> str:
    """What the owner has not done yet; "" when it has seen the end."""
    if outlook.end:
        return ""
    metadata = pod.metadata
    if outlook.uncounted is not None:
        # Without the tracking finalizer a Job has counted the pod or is about to: it never looks at it again.
        return "has not counted it yet" if metadata.uid in outlook.uncounted else ""
    if outlook.noted is not None:
        node = (metadata.annotations or {}).get(_ARGO_NODE, metadata.name)
        return "" if node in outlook.noted else "has not noted its end yet"
    return "has not ended yet"


def _job(status: Object) -> Outlook:
    for each in _conditions(status):
        if each.get("type") in ("Complete", "Failed") and each.get("status") == "True":
            return Outlook(f"is {str(each['type']).lower()}")
    named = _part(status, "uncountedTerminatedPods")
    lists = [found for how in ("succeeded", "failed") if isinstance(found := named.get(how), list)]
    return Outlook(uncounted=frozenset(str(uid) for each in lists for uid in each))


def _workflow(status: Object) -> Outlook:
    ended = ("Succeeded", "Failed", "Error", "Skipped", "Omitted")
    if status.get("phase") in ended:
        return Outlook(f"is {str(status['phase']).lower()}")
    # Large ones keep their nodes packed or elsewhere: then only the pod's own label tells.
    nodes = _part(status, "nodes")
    return Outlook(
        noted=frozenset(
            name for name, node in nodes.items() if isinstance(node, dict) and node.get("phase") in ended
        )
    )


def _end(owner: Object, status: Object, *, is_three_valued: bool) -> str:
    observed, generation = status.get("observedGeneration"), _part(owner, "metadata").get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        # What it says is about what it was asked for before.
        return ""
    for path in _PHASES:
        value: Any = status
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str) and value.replace(" ", "").lower() in _ENDED_WORDS:
            return f"is {value.lower()}"
    if any(isinstance(status.get(field), str) and status[field] for field in _END_TIMES):
        return "has ended"
    return _end_by_condition(status, ("True", "False") if is_three_valued else ("True",))


def _end_by_condition(status: Object, ended: tuple[str, ...]) -> str:
    for each in _conditions(status):
        type_, reason = str(each.get("type") or ""), str(each.get("reason") or "")
        if type_.lower() in _END_CONDITIONS and each.get("status") in ended:
            return f"says {type_}={each['status']}"
        if type_ == "Ready" and reason.lower() in _NOT_READY_ANY_MORE:
            return f"says {type_}={each.get('status')} ({reason})"
    return ""


def _conditions(status: Object) -> list[Object]:
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _part(obj: Object, field: str) -> Object:
    found = obj.get(field)
    return found if isinstance(found, dict) else {}
