"""Claims and volumes as the binder knows them: the informers' caches, and what the binder itself wrote since.

A decision made from a cache that lacks the last write could give one volume to two claims. Written objects therefore
replace the cached ones until the watch has delivered them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata
from podlife.api.volume_binding import BY_CLAIM, Claim, PodVolume, Volume
from podlife.client import Client, Ref
from podlife.informer import Informer
from podlife.informer.indexes import Key

T = TypeVar("T", bound=Claim | Volume)


class VolumePodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    volumes: tuple[PodVolume, ...] = ()


class _PodStatus(msgspec.Struct, gc=False):
    phase: str = ""


class VolumePod(msgspec.Struct):
    metadata: Metadata
    spec: VolumePodSpec = msgspec.field(default_factory=VolumePodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def claim_names(self) -> Iterator[str]:
        names = (each.claim_name(self.metadata.name) for each in self.spec.volumes)
        return (name for name in names if name)


def _claims_of_pod(pod: VolumePod) -> Iterable[str]:
    return {f"{pod.metadata.namespace}/{name}" for name in pod.claim_names}


# Shared: an informer has its indexes once.
pods_by_claim: Any = {BY_CLAIM: _claims_of_pod}


class WrittenCache(Generic[T]):
    """Reads the newest known version of an object, and writes by UID and resourceVersion."""

    def __init__(self, client: Client, ref: Ref, informer: Informer[T], view: type[T]) -> None:
        self._client = client
        self._ref = ref
        self._informer = informer
        self._view = view
        self._written: dict[Key, T] = {}
        informer.add_handler(self)

    def get(self, key: Key) -> T | None:
        cached = self._informer.cache.get(*key)
        return self.newest(cached) if cached is not None else None

    def newest(self, cached: T) -> T:
        meta = cached.metadata
        written = self._written.get((meta.namespace, meta.name))
        return written if written is not None and written.metadata.uid == meta.uid else cached

    async def patch(self, obj: T, patch: Object, *, subresource: str = "") -> T:
        """Write to exactly this version of the object. Raises the server's errors, ConflictError among them."""
        meta = obj.metadata
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = patch | {"metadata": patch.get("metadata", {}) | identity}
        written: T = await self._client.patch(
            self._ref, meta.name, body, meta.namespace, subresource=subresource, view=self._view
        )
        self._written[meta.namespace, meta.name] = written
        return written

    # The informer's handler

    def on_add(self, obj: T) -> None:
        key = (obj.metadata.namespace, obj.metadata.name)
        written = self._written.get(key)
        if written is not None and not _is_older(obj, written):
            del self._written[key]

    def on_update(self, old: T, new: T) -> None:
        self.on_add(new)

    def on_delete(self, obj: T) -> None:
        self._written.pop((obj.metadata.namespace, obj.metadata.name), None)


def _is_older(one: Claim | Volume, other: Claim | Volume) -> bool:
    versions = (one.metadata.resource_version, other.metadata.resource_version)
    if one.metadata.uid != other.metadata.uid or not all(each.isdecimal() for each in versions):
        return False
    return int(versions[0]) < int(versions[1])


def reference(ref: Ref, obj: Claim | Volume) -> Object:
    """For events."""
    meta = obj.metadata
    names = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
    return {"kind": ref.kind, "apiVersion": ref.api_version, **names}
