"""API writes of the Deployment controller, and their events. Nothing is decided here.

Every write carries the UID and the resourceVersion it was decided for, so an outdated one fails with a ConflictError.
Every write is recorded, so that nothing is decided before it has been observed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podlife.api.codec import Object
from podlife.api.selectors import LabelSelector
from podlife.api.views import controller_of
from podlife.client import DEPLOYMENTS, REPLICA_SETS, Client, DeleteOptions, PatchType
from podlife.controller import OwnWrites
from podlife.errors import AlreadyExistsError, ConflictError, NotFoundError, PodlifeError
from podlife.podcontrol import ClaimSettings, ControllerRefManager, EventRecorder, owner_of, recheck_owner
from podlife.podcontrol.errors import as_namespace_terminating
from podlife.workloads.deployment.annotations import Rollback, size_annotations
from podlife.workloads.deployment.rollout import Scale, is_same_template
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.status import StatusWriter


class HashCollisionError(PodlifeError):
    """Another ReplicaSet has the name derived from the template's hash."""


class NotSeenYetError(PodlifeError):
    """The ReplicaSet exists, but is not in the cache yet."""


class DeploymentWriter:
    def __init__(self, client: Client, recorder: EventRecorder, own_writes: OwnWrites) -> None:
        self._client = client
        self._recorder = recorder
        self._own_writes = own_writes
        self.status = StatusWriter(client, DEPLOYMENTS, own_writes)

    def record_event(self, deployment: Deployment, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner_of(deployment, DEPLOYMENTS).object_reference(), type_, reason, message)

    # ReplicaSets

    async def create(self, deployment: Deployment, replica_set: Object) -> ReplicaSet:
        """Return the created ReplicaSet. Raises NotSeenYetError, HashCollisionError, NamespaceTerminatingError and the
        server's other errors."""
        metadata = replica_set["metadata"]
        try:
            made: Object = await self._client.create(REPLICA_SETS, replica_set, metadata["namespace"])
        except AlreadyExistsError as error:
            raise await self._why_it_exists(deployment, metadata["name"]) from error
        except PodlifeError as error:
            raise as_namespace_terminating(error) or error from None
        self._own_writes.note(key_of(deployment), REPLICA_SETS, made)
        if replicas := replica_set["spec"]["replicas"]:
            message = f"Scaled up replica set {metadata['name']} from 0 to {replicas}"
            self.record_event(deployment, "Normal", "ScalingReplicaSet", message)
        return msgspec.convert(made, ReplicaSet)

    async def scale(self, deployment: Deployment, scale: Scale) -> None:
        before, after = scale.replica_set.spec.replicas, scale.replicas
        name = scale.replica_set.metadata.name
        await self.change(deployment, scale.replica_set, size_annotations(deployment), replicas=after)
        if before != after:
            direction = "up" if before < after else "down"
            message = f"Scaled {direction} replica set {name} from {before} to {after}"
            self.record_event(deployment, "Normal", "ScalingReplicaSet", message)

    async def change(
        self,
        deployment: Deployment,
        replica_set: ReplicaSet,
        annotations: dict[str, str],
        *,
        replicas: int | None = None,
        min_ready_seconds: int | None = None,
    ) -> ReplicaSet:
        """Return the changed ReplicaSet."""
        wanted = {"replicas": replicas, "minReadySeconds": min_ready_seconds}
        metadata = replica_set.metadata
        about = {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "annotations": annotations,
        }
        spec = {name: count for name, count in wanted.items() if count is not None}
        patch = {"metadata": about, "spec": spec}
        written: Object = await self._client.patch(REPLICA_SETS, metadata.name, patch, metadata.namespace)
        self._own_writes.note(key_of(deployment), REPLICA_SETS, written)
        return msgspec.convert(written, ReplicaSet)

    async def claim(
        self, deployment: Deployment, selector: LabelSelector, replica_sets: Iterable[ReplicaSet]
    ) -> list[ReplicaSet]:
        """The owned ReplicaSets, after adopting and releasing. Raises the error of a failed claim."""
        owner = owner_of(deployment, DEPLOYMENTS)

        async def patch(namespace: str, name: str, patch: Object) -> None:
            written: Object = await self._client.patch(
                REPLICA_SETS, name, patch, namespace, type=PatchType.STRATEGIC
            )
            self._own_writes.note(key_of(deployment), REPLICA_SETS, written)

        references = ControllerRefManager[ReplicaSet](
            owner,
            selector,
            patch,
            can_adopt=recheck_owner(self._client, DEPLOYMENTS, owner),
            settings=ClaimSettings(kind="ReplicaSet"),
        )
        return await references.claim_all(replica_sets)

    async def remove(self, replica_set: ReplicaSet) -> None:
        """Only in the observed version: it may have been scaled up since."""
        metadata = replica_set.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        try:
            await self._client.delete(
                REPLICA_SETS, metadata.name, metadata.namespace, options=options, metadata_only=True
            )
        except NotFoundError:
            return

    # The Deployment

    async def roll_back(self, deployment: Deployment, rollback: Rollback) -> None:
        """Raises ConflictError if the Deployment has changed since the decision."""
        metadata = deployment.metadata
        current: Object = await self._client.get(DEPLOYMENTS, metadata.name, metadata.namespace)
        if current["metadata"]["resourceVersion"] != metadata.resource_version:
            raise ConflictError(f"deployment {metadata.namespace}/{metadata.name} has changed")
        written: Object = await self._client.update(DEPLOYMENTS, rollback.apply(current))
        self._own_writes.note(key_of(deployment), DEPLOYMENTS, written)
        self.record_event(deployment, *rollback.event)

    async def _why_it_exists(self, deployment: Deployment, name: str) -> PodlifeError:
        namespace = deployment.metadata.namespace
        try:
            found = await self._client.get(REPLICA_SETS, name, namespace, view=ReplicaSet)
        except NotFoundError:
            return NotSeenYetError(f"replica set {namespace}/{name} has just gone")
        owner = controller_of(found.metadata)
        is_own = owner is not None and owner.uid == deployment.metadata.uid
        if is_own and is_same_template(found.spec.template, deployment.spec.template):
            return NotSeenYetError(f"replica set {namespace}/{name} is not in the cache yet")
        return HashCollisionError(f"replica set {namespace}/{name} is of another template or owner")
