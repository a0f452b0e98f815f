"""Upstream's ephemeral-volume-controller: creates the claims of generic ephemeral volumes.

A claim is owned by its pod and deleted with it, by the owner collector. A claim of that name that belongs to something
else is left alone, and the pod waits.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.volume_binding import Claim, PodVolume, claim_problem, claims_by_class
from podlife.client import PERSISTENT_VOLUME_CLAIMS, PODS
from podlife.controller import Controller, ControlPlane, OnChange
from podlife.errors import PodlifeError
from podlife.informer.indexes import Key
from podlife.volumes.volume_cache import VolumePod, pods_by_claim
from podlife.workqueue import RateLimitedQueue


class EphemeralVolumeController:
    name = "ephemeral-volume-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._recorder = plane.recorder("ephemeral_volume")
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("ephemeral_volume")
        self._pods = plane.informer(PODS, view=VolumePod, indexers=pods_by_claim)
        self._claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self._pods.add_handler(OnChange(self._on_pod))
        self._claims.add_handler(OnChange(self._on_claim))
        self.controller = Controller(self.name, self.queue, self.reconcile)

    async def run(self) -> None:
        await self.controller.run()

    def _on_pod(self, pod: VolumePod) -> None:
        if any(each.ephemeral is not None for each in pod.spec.volumes):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))

    def _on_claim(self, claim: Claim) -> None:
        """A deleted claim is created again if its pod still exists."""
        for owner in claim.metadata.owner_references:
            if owner.controller and owner.kind == "Pod":
                self.queue.add((claim.metadata.namespace, owner.name))

    async def reconcile(self, key: Key) -> None:
        """Raises the server's errors, and PodlifeError for a claim that belongs to something else."""
        pod = self._pods.cache.get(*key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            try:
                await self._ensure_claim(pod, volume)
            except PodlifeError as error:
                meta, message = pod.metadata, f"ephemeral volume {volume.name}: {error}"
                names = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
                about = {"kind": "Pod", "apiVersion": "v1", **names}
                self._recorder.event(about, "Warning", "FailedBinding", message)
                raise

    async def _ensure_claim(self, pod: VolumePod, volume: PodVolume) -> None:
        meta, name = pod.metadata, volume.claim_name(pod.metadata.name)
        found = self._claims.cache.get(meta.namespace, name)
        if found is not None:
            if problem := claim_problem(found, meta.namespace, meta.name, meta.uid):
                raise PodlifeError(problem)
            return
        try:
            await self._client.create(PERSISTENT_VOLUME_CLAIMS, _claim(pod, volume, name), meta.namespace)
        except PodlifeError as error:
            raise PodlifeError(f"create PVC {name}: {error}") from error


def _claim(pod: VolumePod, volume: PodVolume, name: str) -> Object:
    template = (volume.ephemeral or {}).get("volumeClaimTemplate") or {}
    owner: Object = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    given = template.get("metadata") or {}
    kept = {field: given[field] for field in ("annotations", "labels") if given.get(field)}
    return {
        "metadata": {"name": name, "ownerReferences": [owner], **kept},
        "spec": template.get("spec") or {},
    }
