"""Writes the status of a workload: only changed fields, and only to the object they were computed from.

A status is a dictionary as the server encodes it: zero counts are omitted where the server omits them. The patch
carries UID and resourceVersion. After a conflict it is tried once more on the newest state, as upstream; other errors
are raised, and the key is retried.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.client import Client, Ref
from podlife.errors import ConflictError, NotFoundError
from podlife.workloads.views import Status, WorkloadMetadata


def changed_fields(old: Status, new: Status) -> Status:
    """The merge patch from one to the other: None takes a field away. Of a field that is an object itself the patch
    holds the new one: where something in it is to go, the caller has to say so."""
    names = [*new, *(name for name in old if name not in new)]
    return {name: new.get(name) for name in names if old.get(name) != new.get(name)}


def next_collision_count(count: int | None) -> int:
    """The next collision count. It wraps at int32, because the server refuses more."""
    return ((count or 0) + 1) & 0x7FFFFFFF


async def write_status(
    client: Client, ref: Ref, metadata: WorkloadMetadata, old: Status, new: Status
) -> Object | None:
    """The object as it was written; None when there was nothing to write, or nobody to write it for any more.

    Raises ConflictError when it was overtaken twice, and what else the server answered."""
    patch = changed_fields(old, new)
    if not patch:
        return None
    name, namespace = metadata.name, metadata.namespace
    try:
        try:
            return await _patch(client, ref, metadata, patch, metadata.resource_version)
        except ConflictError:
            fresh: Object = await client.get(ref, name, namespace)
            if fresh["metadata"]["uid"] != metadata.uid:
                return None
            patch = changed_fields(fresh.get("status") or {}, new)
            if not patch:
                return fresh
            return await _patch(client, ref, metadata, patch, fresh["metadata"]["resourceVersion"])
    except NotFoundError:
        return None


async def _patch(
    client: Client, ref: Ref, metadata: WorkloadMetadata, status: Status, resource_version: str
) -> Object:
    about = {"uid": metadata.uid, "resourceVersion": resource_version}
    written: Object = await client.patch(
        ref, metadata.name, {"metadata": about, "status": status}, metadata.namespace, subresource="status"
    )
    return written
