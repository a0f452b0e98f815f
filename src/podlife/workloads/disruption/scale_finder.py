"""The total scale of the controllers of a set of pods.

ReplicaSets, Deployments, StatefulSets and ReplicationControllers are looked up in caches. For other controllers the
`scale` subresource is read. A pod whose controller has no scale (a Job, a DaemonSet) makes the total unknown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from podlife.api.codec import decode_object
from podlife.api.views import OwnerReference, controller_of
from podlife.client import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Ref
from podlife.controller import ControlPlane
from podlife.errors import NotFoundError, PodlifeError
from podlife.informer import CacheReader, Informer
from podlife.informer.cache import HasMetadata
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.disruption.views import ReplicationController
from podlife.workloads.pod_event_handler import OWNER_INDEXERS
from podlife.workloads.replicaset.controller import INDEXERS as REPLICA_SET_INDEXERS
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.views import WorkloadPod

T = TypeVar("T", bound=HasMetadata)


class NoScaleError(PodlifeError):
    """The expected number of pods cannot be determined, and a retry would not help."""


class ScaleFinder:
    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._deployments = plane.informer(DEPLOYMENTS, view=Deployment, indexers=OWNER_INDEXERS)
        self._replica_sets = plane.informer(REPLICA_SETS, view=ReplicaSet, indexers=REPLICA_SET_INDEXERS)
        self._stateful_sets = plane.informer(STATEFUL_SETS, view=StatefulSet, indexers=OWNER_INDEXERS)
        self._controllers = plane.informer(REPLICATION_CONTROLLERS, view=ReplicationController)

    @property
    def is_live(self) -> bool:
        followed: tuple[Informer[Any], ...] = (
            self._deployments,
            self._replica_sets,
            self._stateful_sets,
            self._controllers,
        )
        return all(each.is_live for each in followed)

    async def expected_pods(self, pods: Collection[WorkloadPod]) -> tuple[int, tuple[str, ...]]:
        """The scale of their controllers, and the names of pods without one. Raises NoScaleError and ApiError."""
        scales: dict[str, int] = {}
        unmanaged: list[str] = []
        seen: set[str] = set()
        for pod in sorted(pods, key=lambda each: each.metadata.name):
            reference = controller_of(pod.metadata)
            if reference is None:
                unmanaged.append(pod.metadata.name)
            elif reference.uid not in seen:
                seen.add(reference.uid)
                found = await self._scale_of(pod.metadata.namespace, reference)
                if found is None:
                    raise NoScaleError(f'found no controllers for pod "{pod.metadata.name}"')
                scales[found[0]] = found[1]
        return sum(scales.values()), tuple(unmanaged)

    async def _scale_of(self, namespace: str, reference: OwnerReference) -> tuple[str, int] | None:
        """UID and scale of the topmost controller: for a pod of a ReplicaSet, its Deployment."""
        group = reference.api_version.rpartition("/")[0]
        found: Deployment | ReplicaSet | StatefulSet | ReplicationController | None = None
        match reference.kind, group:
            case "ReplicationController", "":
                found = _same(self._controllers.cache, namespace, reference)
            case "ReplicaSet", "apps" | "extensions":
                found = self._of_replica_set(namespace, reference)
            case "StatefulSet", "apps":
                found = _same(self._stateful_sets.cache, namespace, reference)
        if found is not None:
            return found.metadata.uid, found.spec.replicas
        return await self._ask(namespace, reference)

    def _of_replica_set(self, namespace: str, reference: OwnerReference) -> Deployment | ReplicaSet | None:
        replica_set = _same(self._replica_sets.cache, namespace, reference)
        above = controller_of(replica_set.metadata) if replica_set is not None else None
        if above is None or above.kind != DEPLOYMENTS.kind:
            return replica_set
        if above.api_version.rpartition("/")[0] not in ("apps", "extensions"):
            return None
        return _same(self._deployments.cache, namespace, above)

    async def _ask(self, namespace: str, reference: OwnerReference) -> tuple[str, int] | None:
        group, _, version = reference.api_version.rpartition("/")
        served = await self._served(reference.api_version)
        plural = next(
            (
                each["name"]
                for each in served
                if each.get("kind") == reference.kind and "/" not in each["name"]
            ),
            None,
        )
        if plural is None:
            raise NoScaleError(f'no matches for kind "{reference.kind}" in version "{reference.api_version}"')
        ref = Ref(group, version, plural, kind=reference.kind)
        try:
            scale: dict[str, Any] = await self._client.get(
                ref, reference.name, namespace, subresource="scale"
            )
        except NotFoundError:
            if not any(each["name"] == f"{plural}/scale" for each in served):
                raise NoScaleError(f"{ref} does not implement the scale subresource") from None
            return None
        if scale["metadata"].get("uid") != reference.uid:
            return None
        return reference.uid, int((scale.get("spec") or {}).get("replicas") or 0)

    async def _served(self, api_version: str) -> list[dict[str, Any]]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            reply = await self._client.request("GET", root)
        except NotFoundError:
            return []
        return list(decode_object(reply.body).get("resources") or ())


def _same(cache: CacheReader[T], namespace: str, reference: OwnerReference) -> T | None:
    """The object with the name and UID of the reference."""
    found = cache.get(namespace, reference.name)
    return found if found is not None and found.metadata.uid == reference.uid else None
