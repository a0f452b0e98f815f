"""kube-scheduler's VolumeBinding and the ReadWriteOncePod part of its VolumeRestrictions.

A pod goes where its bound volumes are. For claims that wait for their first consumer, a suitable volume of the chosen
node is reserved, or the node is written to the claim for its provisioner; the pod is bound to the node when its claims
are bound. Binding claims is up to the volume controllers. Attachment limits, zones and CSI capacity are not considered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from podlife.api.codec import Object
from podlife.api.volume_binding import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    Claim,
    StorageClass,
    Volume,
    claim_problem,
    claims_by_class,
    find_volume,
    volumes_by_claim,
    volumes_for,
)
from podlife.client import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, Ref
from podlife.controller import ControlPlane, OnChange
from podlife.errors import PodlifeError
from podlife.scheduler.node_cache import NodeInfo
from podlife.scheduler.views import SchedulerPod

_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_NOT_REACHABLE = "node(s) didn't match PersistentVolume's node affinity"
_NOT_THERE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_ONE_POD = "PersistentVolumeClaim with ReadWriteOncePod access mode"
_IN_USE = f"node(s) unavailable due to {_ONE_POD} already in-use by another pod"
_BIND_SECONDS = 600.0
_POLL_SECONDS = 10.0


class WaitForClaimsError(PodlifeError):
    """No node suits the pod, because of its claims."""


class VolumeBinding:
    """Claims, volumes and classes. `on_change` is called when one of them may have made a pod schedulable."""

    def __init__(self, plane: ControlPlane, on_change: Callable[[], None]) -> None:
        self.client = plane.client
        self.claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=Claim, indexers=claims_by_class)
        self.volumes = plane.informer(PERSISTENT_VOLUMES, view=Volume, indexers=volumes_by_claim)
        self._classes = plane.informer(STORAGE_CLASSES, view=StorageClass)
        self.changed = asyncio.Event()
        for informer in (self.claims, self.volumes, self._classes):
            informer.add_handler(OnChange(self._on_change))
        self._tell = on_change

    def _on_change(self, _: object) -> None:
        self.changed.set()
        self._tell()

    @property
    def is_live(self) -> bool:
        return self.claims.is_live and self.volumes.is_live and self._classes.is_live

    def claims_of(self, pod: SchedulerPod, users: Callable[[], Iterable[SchedulerPod]]) -> PodClaims | None:
        """The claims of a pod, if it has any. Raises WaitForClaimsError."""
        names = dict.fromkeys(
            name for each in pod.spec.volumes if (name := each.claim_name(pod.metadata.name))
        )
        if not names:
            return None
        found = PodClaims(self)
        for claim in [self._claim(pod, name) for name in names]:
            if claim.is_fully_bound:
                found.bound.append(claim)
            elif (storage_class := self._delayed_class(claim)) is not None:
                found.unbound.append((claim, storage_class))
            else:
                raise WaitForClaimsError("pod has unbound immediate PersistentVolumeClaims")
        exclusive = {
            claim.metadata.name for claim in found.all if "ReadWriteOncePod" in claim.spec.access_modes
        }
        found.is_in_use = bool(exclusive) and any(
            each.claim_name(user.metadata.name) in exclusive
            for user in users()
            if user.metadata.namespace == pod.metadata.namespace and user.metadata.uid != pod.metadata.uid
            for each in user.spec.volumes
        )
        return found

    def _claim(self, pod: SchedulerPod, name: str) -> Claim:
        meta = pod.metadata
        claim = self.claims.cache.get(meta.namespace, name)
        volume = next(each for each in pod.spec.volumes if each.claim_name(meta.name) == name)
        quoted = f'persistentvolumeclaim "{name}"'
        if claim is None:
            waits = f"waiting for ephemeral volume controller to create the {quoted}"
            raise WaitForClaimsError(f"{quoted} not found" if volume.ephemeral is None else waits)
        if claim.status.phase == "Lost":
            gone = claim.spec.volume_name
            raise WaitForClaimsError(f'{quoted} bound to non-existent persistentvolume "{gone}"')
        if claim.metadata.deletion_timestamp is not None:
            raise WaitForClaimsError(f"{quoted} is being deleted")
        if volume.ephemeral is not None and (
            problem := claim_problem(claim, meta.namespace, meta.name, meta.uid)
        ):
            raise WaitForClaimsError(problem)
        return claim

    def _delayed_class(self, claim: Claim) -> StorageClass | None:
        """The class of a claim that waits for a consumer."""
        found = self._classes.cache.get("", claim.class_name)
        return (
            found if found is not None and found.waits_for_consumer and not claim.spec.volume_name else None
        )


@dataclass
class PodClaims:
    source: VolumeBinding
    bound: list[Claim] = field(default_factory=list)
    unbound: list[tuple[Claim, StorageClass]] = field(default_factory=list)
    is_in_use: bool = False
    # The labels of nodes that suit, by name: one of them is chosen.
    _labels: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def all(self) -> list[Claim]:
        return [*self.bound, *(claim for claim, _ in self.unbound)]

    def obstacle(self, state: NodeInfo) -> str:
        """Why the node is unsuitable; empty if it is suitable."""
        if self.is_in_use:
            return _IN_USE
        for claim in self.bound:
            volume = self.source.volumes.cache.get("", claim.spec.volume_name)
            if volume is None:
                return _NOT_THERE
            if not volume.is_reachable_from(state.labels):
                return _NOT_REACHABLE
        if self._choose(state.name, state.labels) is None:
            return _NO_VOLUME
        self._labels[state.name] = state.labels
        return ""

    def _choose(self, node_name: str, labels: dict[str, str]) -> list[tuple[Claim, Volume | None]] | None:
        """A volume for each claim, None where one is to be provisioned; None as a whole if the node has not enough."""
        chosen: list[tuple[Claim, Volume | None]] = []
        for claim, storage_class in self.unbound:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            taken = [volume.metadata.name for _, volume in chosen if volume is not None]
            volume = None
            if selected is None:
                volumes = volumes_for(claim, self.source.volumes.cache.by_index)
                volume = find_volume(claim, volumes, node_labels=labels, excluded=taken)
            is_provisionable = storage_class.provisioner != NO_PROVISIONER and storage_class.allows(labels)
            if selected not in (None, node_name) or (volume is None and not is_provisionable):
                return None
            chosen.append((claim, volume))
        return chosen

    async def bind(self, node_name: str, is_wanted: Callable[[], bool]) -> None:
        """Reserve or request volumes of the node, and wait until the claims are bound. Raises PodlifeError."""
        chosen = self._choose(node_name, self._labels[node_name])
        if chosen is None:
            raise PodlifeError(f"binding volumes: {_NO_VOLUME}")
        for claim, volume in chosen:
            meta = claim.metadata
            if volume is not None:
                names = {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
                version = {"apiVersion": "v1", "resourceVersion": meta.resource_version}
                reference = {"kind": "PersistentVolumeClaim", **names, **version}
                patch = {"spec": {"claimRef": reference}}
                if not volume.is_bound_to(claim):
                    patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
                await self._patch(PERSISTENT_VOLUMES, volume, patch)
            elif meta.annotations.get(SELECTED_NODE) != node_name:
                annotations = {SELECTED_NODE: node_name}
                await self._patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"annotations": annotations}})
        try:
            async with asyncio.timeout(_BIND_SECONDS):
                await self._wait_until_bound(
                    {claim.key for claim, volume in chosen if volume is None}, is_wanted
                )
        except TimeoutError:
            raise PodlifeError("binding volumes: context deadline exceeded") from None

    async def _patch(self, ref: Ref, obj: Claim | Volume, patch: Object) -> None:
        meta = obj.metadata
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = patch | {"metadata": patch.get("metadata", {}) | identity}
        await self.source.client.patch(ref, meta.name, body, meta.namespace)

    async def _wait_until_bound(
        self, provisioned: set[tuple[str, str]], is_wanted: Callable[[], bool]
    ) -> None:
        has_node: set[tuple[str, str]] = set()
        while True:
            current = [self.source.claims.cache.get(*claim.key) for claim in self.all]
            if None in current or not is_wanted():
                raise PodlifeError("binding volumes: a claim or the pod does not exist any more")
            claims = [claim for claim in current if claim is not None]
            # Upstream does not wait for the phase, and a node that reads the claim too early waits for ten seconds.
            if all(claim.is_fully_bound and claim.status.phase == "Bound" for claim in claims):
                return
            for claim in claims:
                if SELECTED_NODE in claim.metadata.annotations:
                    has_node.add(claim.key)
                elif claim.key in provisioned & has_node:
                    name = claim.metadata.name
                    raise PodlifeError(f'binding volumes: selectedNode annotation reset for PVC "{name}"')
            self.source.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self.source.changed.wait()
