"""Whether the owner of a finished pod has observed its end. Pure.

It depends on the kind of the owner. Jobs and Argo Workflows record their pods in their status. For other kinds it is
enough that the owner itself has ended. ReplicaSets and similar kinds count running pods only and do not wait for
finished ones. If in doubt, the answer is "not yet": the caller limits the wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata, OwnerReference, controller_of
from podlife.podgc.policy.model import OWNER_HAS_SEEN
from podlife.podgc.views import ContainerStatus

TRACKING = "batch.kubernetes.io/job-tracking"
# On pods of an Argo Workflow: a finalizer until their state is recorded, a label after that.
_ARGO_FINALIZER = "workflows.argoproj.io/status"
_ARGO_COMPLETED = "workflows.argoproj.io/completed"
_ARGO_NODE = "workflows.argoproj.io/node-id"
_FINALIZERS = {
    TRACKING: "its Job has not counted it yet",
    _ARGO_FINALIZER: "its Workflow has not recorded its end yet",
}
# Kinds that count running pods only; a Node owns its static pods and does not wait for their end.
_COUNT_RUNNING_PODS = frozenset(
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
# Where batch kinds report their phase: Spark, Ray, Volcano, Flyte and others.
_PHASES = (
    ("phase",),
    ("state",),
    ("state", "phase"),
    ("applicationState", "state"),
    ("jobStatus",),
    ("jobDeploymentStatus",),
)
# Pod conditions whose last transition dates the end.
_ENDINGS = ("Ready", "ContainersReady", "DisruptionTarget")
_END_TIMES = ("completionTime", "completionTimestamp", "completedAt", "finishedAt", "endTime")
_END_CONDITIONS = frozenset(("complete", "completed", "succeeded", "failed", "finished"))
# Reasons of Ready=False that mean the end. Failed is not among them: it may be retried.
_NOT_READY_ANY_MORE = frozenset(("complete", "completed", "finished", "succeeded"))
# In this group Succeeded=False is an end as well: it is Unknown while running.
_THREE_VALUED = "tekton.dev"


class _PodMetadata(Metadata):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    start_time: datetime | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    conditions: tuple[_Condition, ...] | None = None


class EndedPod(msgspec.Struct):
    """The fields of a pod that show whether its owner has observed its end."""

    metadata: _PodMetadata
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an owner's status shows about its pods.

    `end` describes the end of the owner itself: it then needs its pods no more. Otherwise `uncounted` are the UIDs of
    pods that it has still to count (None if it does not count them), and `noted` the pods whose end it has recorded, by
    its own name for them (None if it records none)."""

    end: str = ""
    uncounted: frozenset[str] | None = None
    noted: frozenset[str] | None = None


def ended_at(pod: EndedPod) -> datetime:
    """The latest time at which it may have ended, as for rules: the wait starts there."""
    status, metadata = pod.status, pod.metadata
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    ends = [each.end.finished_at for each in containers if each.end is not None]
    ends += [each.last_transition_time for each in status.conditions or () if each.type in _ENDINGS]
    known = [each for each in ends if each is not None]
    if not known:
        known = [each for each in (metadata.deletion_timestamp, status.start_time) if each is not None]
    if metadata.creation_timestamp is not None:
        # The node's clock may be far behind.
        known.append(metadata.creation_timestamp)
    return max(known, default=datetime.min.replace(tzinfo=UTC))


def pending_on(pod: EndedPod) -> str:
    """What on the pod shows that its owner has not observed its end, or ""."""
    if is_acknowledged(pod):
        return ""
    return next((_FINALIZERS[each] for each in pod.metadata.finalizers if each in _FINALIZERS), "")


def is_acknowledged(pod: EndedPod) -> bool:
    """Whether the owner has acknowledged the end on the pod."""
    metadata = pod.metadata
    value = (metadata.annotations or {}).get(OWNER_HAS_SEEN)
    if value is not None and value.strip().lower() != "false":
        return True
    return (metadata.labels or {}).get(
        _ARGO_COMPLETED
    ) == "true" and _ARGO_FINALIZER not in metadata.finalizers


def owner_to_ask(pod: EndedPod) -> OwnerReference | None:
    """The owner to ask; None if no owner waits for the end."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return None
    group = owner.api_version.rpartition("/")[0]
    return None if (group, owner.kind) in _COUNT_RUNNING_PODS else owner


def outlook_of(owner: Object) -> Outlook:
    group, kind = str(owner.get("apiVersion") or "").rpartition("/")[0], str(owner.get("kind") or "")
    status = _part(owner, "status")
    if (group, kind) == ("batch", "Job"):
        return _job(status)
    if (group, kind) == ("argoproj.io", "Workflow"):
        return _workflow(status)
    return Outlook(_end(owner, status, is_three_valued=group == _THREE_VALUED))


def still_waiting(outlook: Outlook, pod: EndedPod) -> str:
    """What the owner has not done yet; "" if it has observed the end."""
    if outlook.end:
        return ""
    metadata = pod.metadata
    if outlook.uncounted is not None:
        # Without the tracking finalizer, a Job has counted the pod or is about to, and does not read it again.
        return "has not counted it yet" if metadata.uid in outlook.uncounted else ""
    if outlook.noted is not None:
        node = (metadata.annotations or {}).get(_ARGO_NODE, metadata.name)
        return "" if node in outlook.noted else "has not recorded its end yet"
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
    # Large Workflows store their nodes compressed or elsewhere: then only the pod's label tells.
    nodes = _part(status, "nodes")
    return Outlook(
        noted=frozenset(
            name for name, node in nodes.items() if isinstance(node, dict) and node.get("phase") in ended
        )
    )


def _end(owner: Object, status: Object, *, is_three_valued: bool) -> str:
    observed, generation = status.get("observedGeneration"), _part(owner, "metadata").get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        # The status is about an older generation.
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
