"""Mirror pods: represent static pods at the API server.

A mirror carries the hash of its static pod; a mirror with another hash, or one being deleted, is replaced. The Node
owns it, so none is created before the Node exists. Deletes carry the UID of a pod that was read. Errors never affect
the static pod: each reason is logged once, and the next call tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from podlife.api.codec import Object
from podlife.client import PODS, Client, DeleteOptions
from podlife.errors import AlreadyExistsError, ConflictError, NotFoundError, PodlifeError
from podlife.kubelet.config.manifest import HASH, MIRROR
from podlife.kubelet.pod_fields import Pod, is_deleting, is_mirror

log = logging.getLogger(__name__)

# Bounds the memory of logged errors; more pods than a node has.
_MAX_COMPLAINTS = 1000


class MirrorOwner(Protocol):
    """The Node at the API server; `uid` is "" if there is none."""

    @property
    def uid(self) -> str: ...

    def node(self) -> Object: ...


def is_mirror_of(mirror: Pod, pod: Pod) -> bool:
    """Whether it mirrors the current version of this pod."""
    one, other = mirror["metadata"], pod["metadata"]
    digest = (one.get("annotations") or {}).get(MIRROR)
    return (
        (one["name"], one["namespace"]) == (other["name"], other["namespace"])
        and digest is not None
        and digest == (other.get("annotations") or {}).get(HASH)
    )


class ApiMirrorClient:
    """`node` owns the mirrors."""

    def __init__(self, client: Client, node: MirrorOwner) -> None:
        self._client = client
        self._node = node
        self._logged: dict[str, str] = {}

    async def ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        """Create or replace the mirror if `mirror`, the known one, is outdated. Returns the current mirror."""
        uid = pod["metadata"]["uid"]
        try:
            existing = await self._ensure(pod, mirror)
        except PodlifeError as error:
            metadata = pod["metadata"]
            where = f"{metadata['namespace']}/{metadata['name']}"
            self._log_once(uid, f"static pod {where} has no mirror pod: {error}")
            return None
        self._logged.pop(uid, None)
        return existing

    async def delete(self, full_name: str, uid: str) -> bool:
        """Delete the mirror with this full name (name_namespace) and UID; returns whether this call did it. False if it
        is gone or was replaced, or if the server is unreachable: call again."""
        name, _, namespace = full_name.rpartition("_")
        if not (name and namespace and uid):
            raise ValueError(f"{full_name!r} with the UID {uid!r} names no mirror pod")
        try:
            await self._client.delete(
                PODS,
                name,
                namespace,
                options=DeleteOptions(grace_period_seconds=0, uid=uid),
                metadata_only=True,
            )
        except (NotFoundError, ConflictError):
            return False
        except PodlifeError as error:
            self._log_once(uid, f"the mirror pod {namespace}/{name} is not deleted: {error}")
            return False
        self._logged.pop(uid, None)
        return True

    async def _ensure(self, pod: Pod, mirror: Pod | None) -> Object | None:
        if mirror is not None:
            if is_mirror_of(mirror, pod) and not is_deleting(mirror):
                return dict(mirror)
            name = f"{mirror['metadata']['name']}_{mirror['metadata']['namespace']}"
            if not await self.delete(name, mirror["metadata"]["uid"]):
                return None
        if not self._node.uid or is_deleting(self._node.node()):
            return None
        try:
            return await self._create(pod)
        except AlreadyExistsError:
            return await self._adopt_or_replace(pod)

    async def _create(self, pod: Pod) -> Object:
        mirror: Object = await self._client.create(PODS, _mirror(pod, self._node))
        return mirror

    async def _adopt_or_replace(self, pod: Pod) -> Object | None:
        """A pod of this name exists that the cache lacks: this mirror, an outdated mirror, or a foreign pod."""
        metadata = pod["metadata"]
        existing: Object = await self._client.get(PODS, metadata["name"], metadata["namespace"])
        if is_mirror_of(existing, pod) and not is_deleting(existing):
            return existing
        if not is_mirror(existing) or (existing.get("spec") or {}).get("nodeName") != pod["spec"]["nodeName"]:
            raise PodlifeError("a pod of its name exists that is not this node's; rename one of them")
        if not await self.delete(f"{metadata['name']}_{metadata['namespace']}", existing["metadata"]["uid"]):
            return None
        return await self._create(pod)

    def _log_once(self, uid: str, line: str) -> None:
        if self._logged.get(uid) != line:
            log.warning("%s", line)
        if len(self._logged) >= _MAX_COMPLAINTS:
            self._logged.clear()
        self._logged[uid] = line


def _mirror(pod: Pod, node: MirrorOwner) -> Object:
    metadata: Mapping[str, Any] = pod["metadata"]
    annotations = metadata["annotations"]
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": pod["spec"]["nodeName"],
        "uid": node.uid,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            **({"labels": dict(metadata["labels"])} if metadata.get("labels") else {}),
            "annotations": {**annotations, MIRROR: annotations[HASH]},
            "ownerReferences": [owner],
        },
        "spec": dict(pod["spec"]),
    }
