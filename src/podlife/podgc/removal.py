"""Removal of one victim: pre-delete steps, then it is marked Failed if necessary, and deleted.

Pre-delete steps are work that must be done (an archive) or a condition that must hold (the owner wait). They run for
each victim immediately before it is marked or deleted. A step that fails keeps the pod, which is tried again later.

A pod that has not ended is marked Failed, so that watchers observe an end; an orphan also gets a DisruptionTarget
condition. Every request carries the pod's UID, and the status patch the resource version that was evaluated. So a pod
created again under the same name survives, and an answer that says so is not a failure (404, 409, and 422 for another
UID).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from podlife.api.codec import Object, format_time
from podlife.api.patch import create_two_way_merge_patch
from podlife.api.views import OwnerReference, controller_of
from podlife.client import PODS, Client, DeleteOptions, PatchType
from podlife.clock import Clock
from podlife.errors import ConflictError, InvalidError, NotFoundError, PodlifeError
from podlife.events import Recorder
from podlife.podgc.metrics import Metrics
from podlife.podgc.plan import Action, Victim
from podlife.podgc.reasons import Cause, Reason
from podlife.podgc.settings import FeatureGates
from podlife.podgc.views import DISRUPTION_TARGET, Deleted, Pod

# Log under the collector's name.
log = logging.getLogger("podlife.podgc.collector")

# Pre-delete steps


class Stay(str):
    """A reason that ends at a known time: the pod is tried again then at the latest."""

    __slots__ = ("until",)

    until: datetime

    def __new__(cls, why: str, until: datetime) -> Stay:
        made = super().__new__(cls, why)
        made.until = until
        return made


class PreDeleteStep(Protocol):
    async def __call__(self, victim: Victim) -> str:
        """The reason why the pod stays, or "". Bounded in time; may run more than once for a pod. Raises PodlifeError
        for transient failures; the pod stays then too."""


async def reason_to_stay(steps: Iterable[PreDeleteStep], victim: Victim) -> str:
    """The reason of the first step that keeps the victim, or ""."""
    for step in steps:
        if why := await step(victim):
            return why
    return ""


# Results


class Outcome(StrEnum):
    DELETED = "deleted"
    # The server accepted the deletion; finalizers still hold the pod.
    HELD = "held"
    MARKED = "marked"
    # Deleted by someone else.
    GONE = "gone"
    REPLACED = "replaced"
    CHANGED = "changed"
    # A pre-delete step kept it; `why` gives the reason.
    KEPT = "kept"

    @property
    def is_deletion(self) -> bool:
        return self in (Outcome.DELETED, Outcome.HELD)


@dataclass(frozen=True, slots=True)
class Removal:
    outcome: Outcome
    # The pod's owner and remaining finalizers, from the server's answer.
    owner: OwnerReference | None = None
    finalizers: tuple[str, ...] = ()
    # Why it was kept.
    why: str = ""


# Removal


async def remove(
    client: Client, victim: Victim, gates: FeatureGates, clock: Clock, steps: Sequence[PreDeleteStep] = ()
) -> Removal:
    """Remove the victim if every step allows it. Raises ApiError or UnreachableError; if a step or the status patch
    failed, the pod was not deleted (GC-93)."""
    if why := await reason_to_stay(steps, victim):
        return Removal(Outcome.KEPT, why=why)
    if victim.action is not Action.DELETE:
        marked = await _mark(client, victim, gates, clock)
        if marked is not Outcome.MARKED or victim.action is Action.MARK:
            return Removal(marked)
    return await _delete(client, victim)


async def _mark(client: Client, victim: Victim, gates: FeatureGates, clock: Clock) -> Outcome:
    metadata = victim.pod.metadata
    patch = marking_patch(victim.pod, victim.reason, gates, clock.now())
    if patch is None:
        return Outcome.MARKED
    try:
        await client.patch(
            PODS,
            metadata.name,
            patch,
            metadata.namespace,
            type=PatchType.STRATEGIC,
            subresource="status",
            view=_Nothing,
        )
    except NotFoundError:
        return Outcome.GONE
    except ConflictError:
        return Outcome.CHANGED
    except InvalidError as error:
        # The server's answer when the pod of this name has another UID (GC-92).
        if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
            return Outcome.REPLACED
        raise
    return Outcome.MARKED


async def _delete(client: Client, victim: Victim) -> Removal:
    pod = victim.pod.metadata
    # A rule's decision holds for the version that was evaluated: labels may have changed since. A pod that was marked
    # has a newer version, which the patch was conditional on.
    version = pod.resource_version if victim.rule and victim.action is Action.DELETE else ""
    # Grace 0, as upstream; the UID precondition is podlife's (GC-94).
    options = DeleteOptions(grace_period_seconds=0, uid=pod.uid, resource_version=version)
    try:
        answer = await client.delete(
            PODS, pod.name, pod.namespace, options=options, view=Deleted, metadata_only=True
        )
    except NotFoundError:
        return Removal(Outcome.GONE)
    except ConflictError:
        return Removal(Outcome.CHANGED if version else Outcome.REPLACED)
    metadata = answer.metadata
    outcome = Outcome.HELD if metadata.finalizers else Outcome.DELETED
    return Removal(outcome, controller_of(metadata), metadata.finalizers)


class _Nothing(msgspec.Struct):
    """Decodes nothing of the answer."""


# Status patch


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


# Events


def event_about(victim: Victim, removal: Removal) -> tuple[Mapping[str, str], str] | None:
    """The object and message of the event about a deletion: the pod's owner, or else its namespace."""
    if not removal.outcome.is_deletion:
        return None
    metadata = victim.pod.metadata
    # Upstream rules are named for their reason.
    is_own = bool(victim.rule) and not victim.rule.startswith("upstream/")
    rule = f", rule {victim.rule}" if is_own else ""
    message = f"podlife-gc deleted pod {metadata.name} ({victim.reason}{rule}): {victim.why}"
    if removal.outcome is Outcome.HELD:
        message = f"{message}; held by {', '.join(removal.finalizers)}"
    return owner_or_namespace(removal.owner, metadata.namespace), message


def owner_or_namespace(owner: OwnerReference | None, namespace: str) -> Mapping[str, str]:
    """The object of an event about a pod that is gone, or about to go."""
    if owner is None:
        return {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "namespace": namespace}
    regarding = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**regarding, "namespace": namespace}


def regarding_pod(victim: Victim) -> Mapping[str, str]:
    """The object of an event about a pod that stays."""
    metadata = victim.pod.metadata
    named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": "v1", "kind": "Pod", **named}


class Reporter:
    """Reports the result for each pod: a log line, metrics and, with a recorder, an event."""

    def __init__(self, metrics: Metrics, recorder: Recorder | None) -> None:
        self._metrics = metrics
        self._recorder = recorder

    def done(self, victim: Victim, removal: Removal) -> None:
        log.info("%s: %s", removal.outcome, victim.pod.key, extra={**_log_fields(victim), "why": victim.why})
        if removal.outcome.is_deletion:
            self._metrics.deleted[victim.pod.metadata.namespace, victim.reason] += 1
            if victim.rule:
                self._metrics.deleted_by_rule[victim.rule] += 1
        if self._recorder is not None and (event := event_about(victim, removal)) is not None:
            regarding, message = event
            self._recorder.event(regarding, "Normal", "PodGarbageCollected", message)

    def kept(self, victim: Victim, why: str) -> None:
        log.warning("pod %s kept: %s", victim.pod.key, why, extra=_log_fields(victim))
        if self._recorder is not None:
            self._recorder.event(regarding_pod(victim), "Warning", "PodNotCollected", f"podlife-gc: {why}")

    def failed(self, victim: Victim, error: PodlifeError) -> None:
        self._metrics.errors[victim.pod.metadata.namespace, victim.reason] += 1
        log.warning("failed to delete pod %s: %s", victim.pod.key, error, extra=_log_fields(victim))


def _log_fields(victim: Victim) -> dict[str, str]:
    rule = {"rule": victim.rule} if victim.rule else {}
    return {"pod": victim.pod.key, "uid": victim.pod.metadata.uid, "reason": str(victim.reason), **rule}
