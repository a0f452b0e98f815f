"""Upstream's protection controllers: what is in use is not removed, even if it is being deleted.

Admission sets the finalizers; objects from before have them added here. Each controller removes its finalizer from an
object that is being deleted as soon as nothing uses it. A pod uses its claims from the moment it has a node until it
is gone; a claim uses its volume while it is bound to it; claims and volumes use the attributes class they name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from podlife.api.views import Metadata, MetadataOnly
from podlife.api.volume_binding import (
    BY_CLAIM,
    Claim,
    Volume,
    claim_problem,
    claims_by_class,
    volumes_by_claim,
)
from podlife.client import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTRIBUTES_CLASSES,
    Ref,
)
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OnChange
from podlife.errors import ConflictError, NotFoundError
from podlife.informer import Informer
from podlife.informer.indexes import Key
from podlife.volumes.volume_cache import VolumePod, pods_by_claim
from podlife.workqueue import RateLimitedQueue

_CATCH_UP_SECONDS = 0.1


class _Protection:
    """The reconcile of all of them. `is_used` decides by caches that are up to date, or asks the server: a finalizer
    that is removed too early cannot be put back."""

    def __init__(
        self, plane: ControlPlane, ref: Ref, informer: Informer[Any], finalizer: str, name: str
    ) -> None:
        self._client = plane.client
        self._ref = ref
        self._informer = informer
        self._finalizer = finalizer
        self._name = name
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue(name)
        informer.add_handler(Enqueue(self.queue))

    def controller(self, is_used: Callable[[Any], Awaitable[bool]]) -> Controller[Key]:
        async def reconcile(key: Key) -> Again | None:
            if not self._informer.is_live:
                return Again(_CATCH_UP_SECONDS)
            found = self._informer.cache.get(*key)
            meta = None if found is None else found.metadata
            if meta is None:
                return None
            is_protected = self._finalizer in meta.finalizers
            if meta.deletion_timestamp is None:
                if not is_protected:
                    await self._set(meta, (*meta.finalizers, self._finalizer))
            elif is_protected and not await is_used(found):
                await self._set(meta, [each for each in meta.finalizers if each != self._finalizer])
            return None

        return Controller(self._name, self.queue, reconcile)

    async def _set(self, meta: Metadata, finalizers: Iterable[str]) -> None:
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {"metadata": identity | {"finalizers": list(finalizers)}}
        try:
            await self._client.patch(self._ref, meta.name, patch, meta.namespace)
        except (ConflictError, NotFoundError):
            # It has changed: its event enqueues it again.
            return


class ClaimProtectionController:
    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._pods = plane.informer(PODS, view=VolumePod, indexers=pods_by_claim)
        finalizer = "kubernetes.io/pvc-protection"
        protection = _Protection(plane, PERSISTENT_VOLUME_CLAIMS, claims, finalizer, self.name)
        self.queue = protection.queue
        self._pods.add_handler(OnChange(self._on_pod))
        self.controller = protection.controller(self._is_used)

    async def run(self) -> None:
        await self.controller.run()

    def _on_pod(self, pod: VolumePod) -> None:
        for name in pod.claim_names:
            self.queue.add((pod.metadata.namespace, name))

    async def _is_used(self, claim: Claim) -> bool:
        cached = self._pods.cache.by_index(BY_CLAIM, "/".join(claim.key))
        if any(_uses(pod, claim) for pod in cached):
            return True
        # The cache may not have the pod that was bound last.
        listed = await self._client.list_all(PODS, claim.metadata.namespace, view=VolumePod)
        return any(_uses(pod, claim) for pod in listed.items)


def _uses(pod: VolumePod, claim: Claim) -> bool:
    meta, name = pod.metadata, claim.metadata.name
    is_shut_down = meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds == 0
    is_own = not claim_problem(claim, meta.namespace, meta.name, meta.uid)
    return bool(pod.spec.node_name) and any(
        each.claim_name(meta.name) == name and (each.ephemeral is None or (is_own and not is_shut_down))
        for each in pod.spec.volumes
    )


class VolumeProtectionController:
    name = "persistentvolume-protection-controller"

    def __init__(self, plane: ControlPlane) -> None:
        volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        finalizer = "kubernetes.io/pv-protection"
        protection = _Protection(plane, PERSISTENT_VOLUMES, volumes, finalizer, self.name)
        self.queue = protection.queue
        self.controller = protection.controller(_is_bound)

    async def run(self) -> None:
        await self.controller.run()


async def _is_bound(volume: Volume) -> bool:
    return volume.status.phase == "Bound"


class VolumeAttributesClassProtectionController:
    name = "volumeattributesclass-protection-controller"

    def __init__(self, plane: ControlPlane) -> None:
        classes = plane.informer(VOLUME_ATTRIBUTES_CLASSES, view=MetadataOnly)
        self._claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        finalizer = "kubernetes.io/vac-protection"
        protection = _Protection(plane, VOLUME_ATTRIBUTES_CLASSES, classes, finalizer, self.name)
        self.queue = protection.queue
        for informer in (self._claims, self._volumes):
            informer.add_handler(OnChange(self._on_user))
        self.controller = protection.controller(self._is_used)

    async def run(self) -> None:
        await self.controller.run()

    def _on_user(self, user: Claim | Volume) -> None:
        for name in filter(None, _attributes_of(user)):
            self.queue.add(("", name))

    async def _is_used(self, attributes: MetadataOnly) -> bool:
        users: list[Claim | Volume] = [*self._claims.cache.list(), *self._volumes.cache.list()]
        return any(attributes.metadata.name in _attributes_of(each) for each in users)


def _attributes_of(user: Claim | Volume) -> tuple[str | None, ...]:
    if isinstance(user, Volume):
        return (user.spec.volume_attributes_class_name,)
    return (user.spec.volume_attributes_class_name, user.status.current_volume_attributes_class_name)
