"""Writes the status of a workload: only changed fields, and only to the object they were computed from.

A status is a dictionary as the server encodes it: zero counts are omitted where the server omits them. The patch
carries UID and resourceVersion. After a conflict it is tried once more on the newest state, as upstream; other errors
are raised, and the key is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.client import Client, Ref
from podlife.clock import Clock
from podlife.controller import Again, OwnWrites
from podlife.errors import ConflictError, NotFoundError
from podlife.podcontrol import seconds_to_next_check
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.views import Status, Workload, WorkloadMetadata, WorkloadPod

Conditions = list[dict[str, Any]]

_SAFE_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
CATCH_UP_SECONDS = 1.0
"""Retry delay of a key whose caches lag behind; usually the awaited event enqueues it earlier."""


def changed_fields(old: Status, new: Status) -> Status:
    """The merge patch between two statuses: None removes a field. Entries of nested objects are not removed: that is
    left to the caller."""
    names = [*new, *(name for name in old if name not in new)]
    return {name: new.get(name) for name in names if old.get(name) != new.get(name)}


def next_collision_count(count: int | None) -> int:
    """The next collision count. It wraps at int32, because the server refuses more."""
    return ((count or 0) + 1) & 0x7FFFFFFF


def safe_encode(number: int) -> str:
    """Upstream's SafeEncodeString: without vowels, to avoid words."""
    return "".join(_SAFE_CHARACTERS[ord(digit) % len(_SAFE_CHARACTERS)] for digit in str(number))


class StatusWriter:
    """For workloads of one kind; writes are recorded in `own_writes`."""

    def __init__(self, client: Client, ref: Ref, own_writes: OwnWrites) -> None:
        self._client = client
        self._ref = ref
        self._own_writes = own_writes

    async def write(
        self, workload: Workload, new: Status, annotations: Mapping[str, str] = MappingProxyType({})
    ) -> Object | None:
        """The written object; None if nothing has changed or the workload is gone. Annotations are written in the same
        request, because the API counts any other change of a Deployment's annotations in its generation.

        Raises ConflictError after two conflicts, and the server's other errors."""
        client, ref, metadata = self._client, self._ref, workload.metadata
        status = changed_fields(workload.status, new)
        changed = {key: text for key, text in annotations.items() if metadata.annotations.get(key) != text}
        if not status and not changed:
            return None
        try:
            try:
                written = await patch_status(client, ref, metadata, status, annotations=changed)
            except ConflictError:
                written = await client.get(ref, metadata.name, metadata.namespace)
                if written["metadata"]["uid"] != metadata.uid:
                    return None
                status = changed_fields(written.get("status") or {}, new)
                if status or changed:
                    version: str = written["metadata"]["resourceVersion"]
                    written = await patch_status(client, ref, metadata, status, version, annotations=changed)
        except NotFoundError:
            return None
        self._own_writes.note(key_of(workload), ref, written)
        return written


async def patch_status(
    client: Client,
    ref: Ref,
    metadata: WorkloadMetadata,
    status: Status,
    resource_version: str = "",
    *,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Patch the status of the object with this UID and resourceVersion, by default the one it was read with."""
    about: Object = {"uid": metadata.uid, "resourceVersion": resource_version or metadata.resource_version}
    if annotations:
        about["annotations"] = annotations
    body = {"metadata": about, "status": status}
    written: Object = await client.patch(ref, metadata.name, body, metadata.namespace, subresource="status")
    return written


def again_when_available(
    pods: Iterable[WorkloadPod], min_ready_seconds: int, status: Status, now: datetime, clock: Clock
) -> Again | None:
    """When a pod that is ready, but was not available at `now`, becomes available."""
    if min_ready_seconds <= 0 or status.get("readyReplicas", 0) == status.get("availableReplicas", 0):
        return None
    seconds = seconds_to_next_check(pods, min_ready_seconds, now, clock)
    return Again.by_clock(min_ready_seconds if seconds is None else seconds)


# Conditions. Lists are never modified in place, so that the result can be compared with the input.


@dataclass(frozen=True, slots=True)
class ConditionDict:
    type: str
    status: str
    reason: str = ""
    message: str = ""

    def to_object(self, now: datetime, **times: datetime) -> dict[str, Any]:
        """As in the API, with `now` as its last transition. `times` adds other times (`lastUpdateTime`,
        `lastProbeTime`), or overrides the transition."""
        written: dict[str, Any] = {"type": self.type, "status": self.status}
        written |= {name: format_time(time) for name, time in times.items()}
        written.setdefault("lastTransitionTime", format_time(now))
        return written | {
            name: text for name, text in (("reason", self.reason), ("message", self.message)) if text
        }


def find_condition(conditions: Iterable[dict[str, Any]] | None, type_: str) -> dict[str, Any] | None:
    return next((each for each in conditions or () if each.get("type") == type_), None)


def has_condition(conditions: Iterable[dict[str, Any]] | None, type_: str, status: str = "True") -> bool:
    found = find_condition(conditions, type_)
    return found is not None and found.get("status") == status


def with_condition(conditions: Iterable[dict[str, Any]] | None, condition: dict[str, Any]) -> Conditions:
    """With this condition at the end, in place of the one of its type. An existing one with the same status and reason
    is kept; with the same status only its transition time."""
    known = list(conditions or ())
    old = find_condition(known, condition["type"])
    if old is not None and old.get("status") == condition["status"]:
        if old.get("reason", "") == condition.get("reason", ""):
            return known
        condition = {**condition, "lastTransitionTime": old.get("lastTransitionTime")}
    return [*without_condition(known, condition["type"]), condition]


def without_condition(conditions: Iterable[dict[str, Any]] | None, type_: str) -> Conditions:
    return [each for each in conditions or () if each.get("type") != type_]
