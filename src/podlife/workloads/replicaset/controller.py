"""ReplicaSets: as many pods of one template as are asked for.

Decides from its caches, and only from caches that have seen what it did itself: expectations hold back the next
decision until the pods it created or deleted have come or gone, and nothing is decided while the server is not being
followed. Creating begins slowly; deleting takes first what is missed least.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from podlife.api.views import controller_of
from podlife.client import PODS, REPLICA_SETS
from podlife.controller import Again, Controller, ControlPlane, Enqueue
from podlife.errors import NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    POD_INDEXERS,
    ControllerRefManager,
    NamespaceTerminatingError,
    Owner,
    PodControl,
    UidTrackedExpectations,
    claimed_pods,
    deletion_order_with_ranks,
    is_active,
    is_terminating,
    pods_of_owner,
    recheck_owner,
    seconds_to_next_check,
    slow_start,
)
from podlife.workloads.pod_events import OWNER_INDEXERS, OwnedPods
from podlife.workloads.replicaset.status import new_status
from podlife.workloads.replicaset.views import ReplicaSet, selector_of
from podlife.workloads.status import write_status
from podlife.workloads.views import Pod
from podlife.workqueue import RateLimitedQueue

__all__ = ["ReplicaSetController"]

# How many pods are created or deleted for one ReplicaSet before it is looked at again.
_BURST = 500
# How soon a key comes again that had to wait for its caches.
_CATCH_UP_SECONDS = 1.0

BY_CONTROLLER_UID = "controllerUid"


def _controller_uid(replica_set: ReplicaSet) -> tuple[str, ...]:
    owner = controller_of(replica_set.metadata)
    return (owner.uid,) if owner is not None else ()


INDEXERS = {**OWNER_INDEXERS, BY_CONTROLLER_UID: _controller_uid}


class ReplicaSetController:
    """Adds nothing to the control plane by itself: `plane.add(ReplicaSetController(plane))`."""

    name = "replicaset-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5, burst: int = _BURST) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._burst = burst
        self._replica_sets = plane.informer(REPLICA_SETS, view=ReplicaSet, indexers=INDEXERS)
        self._pods = plane.informer(PODS, view=Pod, indexers=POD_INDEXERS)
        self._control = PodControl(plane.client, plane.recorder(self.name))
        self._expectations = UidTrackedExpectations()
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("replicaset")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._replica_sets.add_handler(Enqueue(self.queue))
        self._pods.add_handler(
            OwnedPods(REPLICA_SETS, self._replica_sets.cache, self.queue, selector_of, self._expectations)
        )

    async def run(self) -> None:
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        replica_set = self._replica_sets.cache.get(*key)
        if replica_set is None:
            self._expectations.forget(key)
            return None
        if not (self._pods.is_live and self._replica_sets.is_live):
            # Expectations end by themselves after a time; a cache that nobody feeds would then be believed.
            return Again(_CATCH_UP_SECONDS)
        owner = owner_of_replica_set(replica_set)
        active, terminating = await self._claim(replica_set, owner)
        failure: PodlifeError | None = None
        if self._expectations.is_satisfied(key) and not owner.is_deleting:
            try:
                await self._manage(key, replica_set, owner, active)
            except PodlifeError as error:
                failure = error
        now = self._clock.now()
        status = new_status(replica_set, active, terminating, failure, now)
        await write_status(self._client, REPLICA_SETS, replica_set.metadata, replica_set.status, status)
        if failure is not None:
            raise failure
        min_ready = replica_set.spec.min_ready_seconds
        if min_ready <= 0 or status.get("readyReplicas") == status.get("availableReplicas"):
            return None
        seconds = seconds_to_next_check(active, min_ready, now, self._clock)
        return Again(min_ready if seconds is None else seconds)

    async def _claim(self, replica_set: ReplicaSet, owner: Owner) -> tuple[list[Pod], list[Pod]]:
        """Its active pods, after adopting and releasing; and those that are going."""
        selector = selector_of(replica_set)
        pods = pods_of_owner(self._pods.cache, owner, with_orphans=True)
        references: ControllerRefManager[Pod] = ControllerRefManager(
            owner,
            selector,
            self._control.patch_pod,
            can_adopt=recheck_owner(self._client, REPLICA_SETS, owner),
        )
        claim = await references.claim(filter(is_active, pods))
        claim.raise_errors()
        return claim.claimed, claimed_pods(owner.uid, selector, filter(is_terminating, pods))

    async def _manage(self, key: Key, replica_set: ReplicaSet, owner: Owner, active: Sequence[Pod]) -> None:
        missing = replica_set.spec.replicas - len(active)
        if missing > 0:
            await self._create(key, replica_set, owner, min(missing, self._burst))
        elif missing < 0:
            await self._delete(
                key, owner, self._least_missed(replica_set, active)[: min(-missing, self._burst)]
            )

    async def _create(self, key: Key, replica_set: ReplicaSet, owner: Owner, count: int) -> None:
        self._expectations.expect_creations(key, count)
        reference = owner.controller_ref()
        unmade = 0

        async def create() -> None:
            nonlocal unmade
            try:
                await self._control.create_pods(owner.namespace, replica_set.spec.template, owner, reference)
            except NamespaceTerminatingError:
                # Nothing will come of it however often it is tried, and nobody needs to be told.
                unmade += 1

        made = await slow_start(count, create)
        # What was not made is not waited for.
        self._expectations.add(key, creations=made.succeeded - unmade - count)
        made.raise_error()

    async def _delete(self, key: Key, owner: Owner, pods: Sequence[Pod]) -> None:
        self._expectations.expect_deletions(key, [pod.metadata.uid for pod in pods])
        errors = await asyncio.gather(*(self._delete_one(key, owner, pod) for pod in pods))
        for error in errors:
            if error is not None:
                raise error

    async def _delete_one(self, key: Key, owner: Owner, pod: Pod) -> PodlifeError | None:
        name, uid = pod.metadata.name, pod.metadata.uid
        try:
            await self._control.delete_pod(owner.namespace, name, owner, uid=uid)
        except PodlifeError as error:
            self._expectations.observe_deletion(key, uid)
            return None if isinstance(error, NotFoundError) else error
        return None

    def _least_missed(self, replica_set: ReplicaSet, active: Sequence[Pod]) -> list[Pod]:
        """Those that go first in front: among others, where many pods of one Deployment share a node."""
        neighbours: Counter[str] = Counter()
        for uid in _controller_uid(replica_set):
            for related in self._replica_sets.cache.by_index(BY_CONTROLLER_UID, uid):
                pods = pods_of_owner(self._pods.cache, owner_of_replica_set(related))
                neighbours.update(pod.spec.node_name for pod in pods if is_active(pod))
        ranks = [neighbours[pod.spec.node_name] for pod in active]
        return deletion_order_with_ranks(active, ranks, self._clock.now())


def owner_of_replica_set(replica_set: ReplicaSet) -> Owner:
    metadata = replica_set.metadata
    return Owner(
        REPLICA_SETS.api_version,
        REPLICA_SETS.kind,
        metadata.name,
        metadata.uid,
        metadata.namespace,
        metadata.resource_version,
        is_deleting=metadata.deletion_timestamp is not None,
    )
