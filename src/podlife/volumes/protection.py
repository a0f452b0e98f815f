"""Upstream's protection controllers: what is in use is not removed, even if it is being deleted.

Admission sets the finalizers; objects from before have them added here. Each controller removes its finalizer from an
object that is being deleted as soon as nothing uses it. A pod uses its claims from the moment it has a node until it
is gone; a claim uses its volume while it is bound to it; claims and volumes use the attributes class they name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from podlife.api.views import Metadata
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
    Client,
    Ref,
)
from podlife.controller import Again, Controller, ControlPlane, Enqueue
from podlife.errors import ConflictError, NotFoundError
from podlife.informer import Informer
from podlife.informer.indexes import Key
from podlife.volumes.volume_cache import (
    VolumePod,
    pods_by_claim,
)
from podlife.workqueue import RateLimitedQueue

_CATCH_UP_SECONDS = 0.1


class AttributesClass(msgspec.Struct):
    metadata: Metadata


class _Protection:
    """`is_used` may ask the server: a finalizer that is removed too early cannot be put back."""

    def __init__(
        self,
        client: Client,
        ref: Ref,
        informer: Informer[Any],
        finalizer: str,
        is_used: Callable[[Any], Awaitable[bool]],
    ) -> None:
        self._client = client
        self._ref = ref
        self._informer = informer
        self._finalizer = finalizer
        self._is_used = is_used

    async def reconcile(self, key: Key) -> Again | None:
        if not self._informer.is_live:
            return Again(_CATCH_UP_SECONDS)
        found = self._informer.cache.get(*key)
        if found is None:
            return None
        meta = found.metadata
        is_protected = self._finalizer in meta.finalizers
        if meta.deletion_timestamp is None:
            if not is_protected:
                await self._set(meta, (*meta.finalizers, self._finalizer))
        elif is_protected and not await self._is_used(found):
            await self._set(meta, [each for each in meta.finalizers if each != self._finalizer])
        return None

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
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("pvcprotection")
        claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._pods = plane.informer(PODS, view=VolumePod, indexers=pods_by_claim)
        claims.add_handler(Enqueue(self.queue))
        self._pods.add_handler(_PodEvents(self.queue))
        protection = _Protection(
            plane.client, PERSISTENT_VOLUME_CLAIMS, claims, "kubernetes.io/pvc-protection", self._is_used
        )
        self.controller = Controller(self.name, self.queue, protection.reconcile)

    async def run(self) -> None:
        await self.controller.run()

    async def _is_used(self, claim: Claim) -> bool:
        # A pod that the cache shows on a node uses the claim until its event says otherwise.
        cached = self._pods.cache.by_index(BY_CLAIM, "/".join(claim.key))
        if any(_uses(pod, claim) for pod in cached):
            return True
        # The cache may not have the pod that was bound last.
        listed = await self._client.list_all(PODS, claim.metadata.namespace, view=VolumePod)
        return any(_uses(pod, claim) for pod in listed.items)


def _uses(pod: VolumePod, claim: Claim) -> bool:
    meta, name = pod.metadata, claim.metadata.name
    if not pod.spec.node_name:
        return False
    is_shut_down = meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds == 0
    for each in pod.spec.volumes:
        if each.claim_name(meta.name) != name:
            continue
        is_own = not claim_problem(claim, meta.namespace, meta.name, meta.uid)
        if each.ephemeral is None or (is_own and not is_shut_down):
            return True
    return False


class _PodEvents:
    """Enqueues the claims of a pod that no longer uses them, or never did."""

    def __init__(self, queue: RateLimitedQueue[Key]) -> None:
        self._queue = queue

    def on_add(self, pod: VolumePod) -> None:
        if pod.has_ended or not pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            self.on_delete(pod)

    def on_update(self, old: VolumePod, new: VolumePod) -> None:
        if old.metadata.uid != new.metadata.uid:
            self.on_delete(old)
        self.on_add(new)

    def on_delete(self, pod: VolumePod) -> None:
        for name in pod.claim_names:
            self._queue.add((pod.metadata.namespace, name))


class VolumeProtectionController:
    name = "persistentvolume-protection-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("pvprotection")
        volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        volumes.add_handler(Enqueue(self.queue))
        protection = _Protection(
            plane.client, PERSISTENT_VOLUMES, volumes, "kubernetes.io/pv-protection", _is_bound
        )
        self.controller = Controller(self.name, self.queue, protection.reconcile)

    async def run(self) -> None:
        await self.controller.run()


async def _is_bound(volume: Volume) -> bool:
    return volume.status.phase == "Bound"


class VolumeAttributesClassProtectionController:
    name = "volumeattributesclass-protection-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("vacprotection")
        classes = plane.informer(VOLUME_ATTRIBUTES_CLASSES, view=AttributesClass)
        self._claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        classes.add_handler(Enqueue(self.queue))
        for informer in (self._claims, self._volumes):
            informer.add_handler(_EnqueueAttributesClass(self.queue))
        protection = _Protection(
            plane.client, VOLUME_ATTRIBUTES_CLASSES, classes, "kubernetes.io/vac-protection", self._is_used
        )
        self.controller = Controller(self.name, self.queue, protection.reconcile)

    async def run(self) -> None:
        await self.controller.run()

    async def _is_used(self, attributes: AttributesClass) -> bool:
        name = attributes.metadata.name
        return any(name in _attributes_of(each) for each in self._claims.cache.list()) or any(
            name in _attributes_of(each) for each in self._volumes.cache.list()
        )


def _attributes_of(obj: Claim | Volume) -> tuple[str | None, ...]:
    if isinstance(obj, Volume):
        return (obj.spec.volume_attributes_class_name,)
    return (obj.spec.volume_attributes_class_name, obj.status.current_volume_attributes_class_name)


class _EnqueueAttributesClass:
    """Enqueues the classes that an object named before a change: it may have been the last to use them."""

    def __init__(self, queue: RateLimitedQueue[Key]) -> None:
        self._queue = queue

    def on_add(self, obj: Claim | Volume) -> None:
        """It uses a class: nothing to remove."""

    def on_update(self, old: Claim | Volume, new: Claim | Volume) -> None:
        if _attributes_of(old) != _attributes_of(new):
            self.on_delete(old)

    def on_delete(self, obj: Claim | Volume) -> None:
        for name in filter(None, _attributes_of(obj)):
            self._queue.add(("", name))
