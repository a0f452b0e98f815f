"""Upstream's persistentvolume-binder-controller: binds claims and volumes to each other, and reclaims volumes.

Keys are those of claims, and of volumes with an empty namespace. One worker handles all of them, so that no volume is
given to two claims. Every write names the version that was read; after a conflict the key is handled again. A volume is
never deleted here: that is up to its provisioner, and volumes without one become Failed, as upstream's.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.quantity import parse_nanos
from podlife.api.volume_binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    BY_CLAIM,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    UNBOUND,
    Claim,
    StorageClass,
    Volume,
    claims_by_class,
    default_class,
    find_volume,
    volumes_by_claim,
    volumes_for,
    why_unsuitable,
)
from podlife.client import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from podlife.controller import Again, Controller, ControlPlane, OnChange
from podlife.errors import NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.volumes.volume_cache import (
    VolumePod,
    WrittenCache,
    pods_by_claim,
    reference,
)
from podlife.workqueue import RateLimitedQueue

_BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
_IN_TREE = "kubernetes.io/"
# Pending claims are checked again, and their events repeated, at upstream's interval.
_RESYNC_SECONDS = 15.0
_CATCH_UP_SECONDS = 0.1
_ENDED = ("Released", "Failed")


class PersistentVolumeBinder:
    name = "persistentvolume-binder-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._recorder = plane.recorder("persistentvolume-controller")
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("persistentvolume")
        self._claim_informer = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._volume_informer = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        self._classes = plane.informer(STORAGE_CLASSES, view=StorageClass)
        self._pods = plane.informer(PODS, view=VolumePod, indexers=pods_by_claim)
        self._claims = WrittenCache(plane.client, PERSISTENT_VOLUME_CLAIMS, self._claim_informer, Claim)
        self._volumes = WrittenCache(plane.client, PERSISTENT_VOLUMES, self._volume_informer, Volume)
        self._claim_informer.add_handler(OnChange(self._on_claim))
        self._volume_informer.add_handler(OnChange(self._on_volume))
        self._classes.add_handler(OnChange(lambda each: self._enqueue_unbound(each.metadata.name)))
        self.controller = Controller(self.name, self.queue, self.reconcile)

    async def run(self) -> None:
        await self.controller.run()

    def _on_claim(self, claim: Claim) -> None:
        self.queue.add(claim.key)
        if claim.spec.volume_name:
            self.queue.add(("", claim.spec.volume_name))

    def _on_volume(self, volume: Volume) -> None:
        self.queue.add(("", volume.metadata.name))
        if (ref := volume.spec.claim_ref) is not None:
            self.queue.add((ref.namespace, ref.name))
        elif volume.status.phase == "Available":
            self._enqueue_unbound(volume.class_name)

    def _enqueue_unbound(self, class_name: str) -> None:
        """The claims that could be bound now that a volume or a class has changed; a class may become the default."""
        for name in {class_name, ""}:
            for claim in self._claim_informer.cache.by_index(UNBOUND, name):
                self.queue.add(claim.key)

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors, conflicts with other writers among them."""
        informers = (self._claim_informer, self._volume_informer, self._classes, self._pods)
        if not all(each.is_live for each in informers):
            return Again(_CATCH_UP_SECONDS)
        if not key[0]:
            if (volume := self._volumes.get(key)) is not None:
                await self._sync_volume(volume)
            return None
        claim = self._claims.get(key)
        if claim is None:
            return None
        if BIND_COMPLETED in claim.metadata.annotations:
            await self._sync_bound(claim)
            return None
        await self._sync_unbound(claim)
        found = self._claims.get(key)
        return None if found is None or found.status.phase == "Bound" else Again(_RESYNC_SECONDS)

    # Claims

    async def _sync_unbound(self, claim: Claim) -> None:
        name = claim.spec.volume_name
        if not name:
            await self._find(claim)
            return
        volume = self._volumes.get(("", name))
        if volume is None:
            await self._set_status(claim, "Pending")
        elif volume.spec.claim_ref is None:
            if problem := why_unsuitable(volume, claim):
                message = f'Cannot bind to requested volume "{name}": {problem}'
                self._tell(claim, "Warning", "VolumeMismatch", message)
                await self._set_status(claim, "Pending")
            else:
                await self._bind(volume, claim)
        elif volume.is_bound_to(claim):
            await self._bind(volume, claim)
        else:
            message = f'volume "{name}" already bound to a different claim.'
            self._tell(claim, "Warning", "FailedBinding", message)
            if BOUND_BY_CONTROLLER in claim.metadata.annotations:
                ref = volume.spec.claim_ref
                raise PodlifeError(
                    f'invalid binding of claim "{"/".join(claim.key)}" to volume "{name}": '
                    f'volume already claimed by "{ref.namespace}/{ref.name}"'
                )
            await self._set_status(claim, "Pending")

    async def _find(self, claim: Claim) -> None:
        storage_class = self._classes.cache.get("", claim.class_name) if claim.class_name else None
        is_delayed = storage_class is not None and storage_class.waits_for_consumer
        cached = volumes_for(claim, self._volume_informer.cache.by_index)
        volume = find_volume(claim, map(self._volumes.newest, cached), is_delayed=is_delayed)
        if volume is not None:
            await self._bind(volume, claim)
            return
        if not claim.has_class and (chosen := default_class(self._classes.cache.list())) is not None:
            await self._claims.patch(claim, {"spec": {"storageClassName": chosen.metadata.name}})
            return
        if is_delayed and SELECTED_NODE not in claim.metadata.annotations:
            self._tell_what_it_waits_for(claim)
        elif claim.class_name:
            await self._provision(claim, storage_class)
            return
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._tell(claim, "Normal", "FailedBinding", message)
        await self._set_status(claim, "Pending")

    def _tell_what_it_waits_for(self, claim: Claim) -> None:
        pods = self._pods.cache.by_index(BY_CLAIM, "/".join(claim.key))
        names = sorted(pod.metadata.name for pod in pods if not (pod.has_ended or pod.spec.node_name))
        if not names:
            message = "waiting for first consumer to be created before binding"
            self._tell(claim, "Normal", "WaitForFirstConsumer", message)
            return
        shown = f"pod{'s' * (len(names) > 1)} {','.join(names)}"
        self._tell(claim, "Normal", "WaitForPodScheduled", f"waiting for {shown} to be scheduled")

    async def _provision(self, claim: Claim, storage_class: StorageClass | None) -> None:
        """Ask the provisioner of the class for a volume. None of them is built in."""
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{claim.class_name}" not found'
            self._tell(claim, "Warning", "ProvisioningFailed", message)
            return
        provisioner = storage_class.provisioner
        if provisioner.startswith(_IN_TREE):
            message = f"no volume plugin matched name: {provisioner}"
            self._tell(claim, "Warning", "ProvisioningFailed", message)
            return
        if claim.metadata.annotations.get(STORAGE_PROVISIONER) != provisioner:
            annotations = {_BETA_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
            claim = await self._claims.patch(claim, {"metadata": {"annotations": annotations}})
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' "
            "or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered."
        )
        self._tell(claim, "Normal", "ExternalProvisioning", message)

    async def _sync_bound(self, claim: Claim) -> None:
        name = claim.spec.volume_name
        volume = self._volumes.get(("", name)) if name else None
        if volume is not None:
            ref = volume.spec.claim_ref
            if ref is None or ref.uid == claim.metadata.uid:
                await self._bind(volume, claim)
                return
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            lost = "its PersistentVolume" if name else "reference to PersistentVolume"
            reason, message = "ClaimLost", f"Bound claim has lost {lost}. Data on the volume is lost!"
        if claim.status.phase != "Lost":
            self._tell(await self._set_status(claim, "Lost"), "Warning", reason, message)

    async def _set_status(self, claim: Claim, phase: str, volume: Volume | None = None) -> Claim:
        status: Object = {} if claim.status.phase == phase else {"phase": phase}
        if volume is None:
            known = claim.status
            if known.access_modes or known.capacity or known.current_volume_attributes_class_name:
                status |= {"accessModes": None, "capacity": None, "currentVolumeAttributesClassName": None}
        else:
            if claim.status.access_modes != volume.spec.access_modes:
                status["accessModes"] = volume.spec.access_modes
            if claim.status.phase != phase:
                if parse_nanos(claim.status.capacity.get("storage", "-1")) != volume.storage:
                    status["capacity"] = volume.spec.capacity
                attributes = volume.spec.volume_attributes_class_name
                if claim.status.current_volume_attributes_class_name != attributes:
                    status["currentVolumeAttributesClassName"] = attributes
        return await self._claims.patch(claim, {"status": status}, subresource="status") if status else claim

    # Volumes

    async def _sync_volume(self, volume: Volume) -> None:
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            await self._set_phase(volume, "Available")
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim.spec.volume_name:
            self._check_mode(volume, claim)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._set_phase(volume, "Bound")
        elif (
            PROVISIONED_BY in volume.metadata.annotations
            and volume.spec.persistent_volume_reclaim_policy == "Delete"
        ):
            await self._release(volume)
        else:
            await self._unbind(volume)

    async def _claim_of(self, volume: Volume) -> Claim | None:
        """The claim that it is bound to. Its absence means that data may be deleted: the server is asked."""
        ref = volume.spec.claim_ref
        assert ref is not None
        found = self._claims.get((ref.namespace, ref.name))
        if found is None or found.metadata.uid != ref.uid:
            try:
                found = await self._client.get(PERSISTENT_VOLUME_CLAIMS, ref.name, ref.namespace, view=Claim)
            except NotFoundError:
                return None
        return found if found.metadata.uid == ref.uid else None

    def _check_mode(self, volume: Volume, claim: Claim) -> None:
        """The claim does not know yet: it is handled next."""
        if volume.spec.volume_mode == claim.spec.volume_mode:
            self.queue.add(claim.key)
            return
        cannot, why = "Cannot bind PersistentVolume", "due to incompatible volumeMode."
        of_claim = f'to requested PersistentVolumeClaim "{claim.metadata.name}"'
        self._tell(volume, "Warning", "VolumeMismatch", f"{cannot} {of_claim} {why}")
        of_volume = f'"{volume.metadata.name}" to requested PersistentVolumeClaim'
        self._tell(claim, "Warning", "VolumeMismatch", f"{cannot} {of_volume} {why}")

    async def _release(self, volume: Volume) -> None:
        if volume.status.phase not in _ENDED:
            volume = await self._set_phase(volume, "Released")
        match volume.spec.persistent_volume_reclaim_policy:
            case "Recycle":
                message = "No recycler plugin found for the volume!"
                await self._fail(volume, "VolumeFailedRecycle", message)
            case "Delete":
                if message := _why_not_deletable(volume):
                    await self._fail(volume, "VolumeFailedDelete", message)

    async def _fail(self, volume: Volume, reason: str, message: str) -> None:
        if volume.status.phase != "Failed":
            self._tell(await self._set_phase(volume, "Failed", message), "Warning", reason, message)

    async def _set_phase(self, volume: Volume, phase: str, message: str = "") -> Volume:
        if volume.status.phase == phase:
            return volume
        status = {"phase": phase, "message": message or None}
        return await self._volumes.patch(volume, {"status": status}, subresource="status")

    async def _unbind(self, volume: Volume) -> None:
        if BOUND_BY_CONTROLLER in volume.metadata.annotations:
            annotations = {BOUND_BY_CONTROLLER: None}
            patch: Object = {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
        else:
            patch = {"spec": {"claimRef": {"uid": None}}}
        await self._set_phase(await self._volumes.patch(volume, patch), "Available")

    # Both

    async def _bind(self, volume: Volume, claim: Claim) -> None:
        """Volume first: until its reference is written, the claim may still be bound elsewhere."""
        meta, ref = claim.metadata, volume.spec.claim_ref
        patch: Object = {}
        if ref is None or (ref.namespace, ref.name, ref.uid) != (*claim.key, meta.uid):
            names = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
            version = {"apiVersion": "v1", "resourceVersion": meta.resource_version}
            patch["spec"] = {"claimRef": {"kind": "PersistentVolumeClaim", **names, **version}}
        if not volume.is_bound_to(claim) and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
            patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        if patch:
            volume = await self._volumes.patch(volume, patch)
        volume = await self._set_phase(volume, "Bound")
        patch, annotations = {}, {}
        if claim.spec.volume_name != volume.metadata.name:
            patch["spec"] = {"volumeName": volume.metadata.name}
            annotations[BOUND_BY_CONTROLLER] = "yes"
        if BIND_COMPLETED not in meta.annotations:
            annotations[BIND_COMPLETED] = "yes"
        if patch or annotations:
            claim = await self._claims.patch(claim, patch | {"metadata": {"annotations": annotations}})
        await self._set_status(claim, "Bound", volume)

    def _tell(self, about: Claim | Volume, type_: str, reason: str, message: str) -> None:
        ref = PERSISTENT_VOLUME_CLAIMS if isinstance(about, Claim) else PERSISTENT_VOLUMES
        self._recorder.event(reference(ref, about), type_, reason, message)


def _why_not_deletable(volume: Volume) -> str:
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY)
    if provisioner:
        is_in_tree = provisioner.startswith(_IN_TREE)
        return f"no volume plugin matched name: {provisioner}" if is_in_tree else ""
    if volume.spec.csi is not None:
        return ""
    if volume.spec.host_path is not None:
        path = volume.spec.host_path.get("path", "")
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    name = volume.metadata.name
    return f'error getting deleter volume plugin for volume "{name}": no volume plugin matched'
