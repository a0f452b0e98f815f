"""ReplicaSet controller: keeps a number of pods of one template running. As upstream, it works for
ReplicationControllers too.

It decides only from caches that contain its own writes: expectations hold a key back until created and deleted pods
have been observed, and nothing is decided while the caches are stale. Creation uses slow start; deletion follows
upstream's order (`podcontrol.deletion_order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from podlife.api.views import controller_of
from podlife.client import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Ref
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.errors import PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    BY_CONTROLLER,
    INITIAL_BATCH,
    POD_INDEXERS,
    ControllerRefManager,
    CreateUntilTerminating,
    Owner,
    PodControl,
    UidTrackedExpectations,
    UncertainCreates,
    controller_index_key,
    create_expected,
    delete_expected,
    deletion_order_with_ranks,
    is_active,
    owner_of,
    pod_from_template,
    pods_of_owner,
    recheck_owner,
)
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, PodEventHandler, note_pods
from podlife.workloads.replicaset.status import Sorted, affects_status, new_status, sort_pods
from podlife.workloads.replicaset.views import ReplicaSet, ReplicationController, template_labels
from podlife.workloads.status import CATCH_UP_SECONDS, StatusWriter, again_when_available
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import RateLimitedQueue

# Maximum number of pods created or deleted per reconcile of a ReplicaSet.
_BURST = 500
BY_CONTROLLER_UID = "controllerUid"


def _controller_uid(replica_set: ReplicaSet) -> tuple[str, ...]:
    owner = controller_of(replica_set.metadata)
    return (owner.uid,) if owner is not None else ()


INDEXERS = {**OWNER_INDEXERS, BY_CONTROLLER_UID: _controller_uid}


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """The kind of object that a ReplicaSetController works for, and under which names."""

    ref: Ref
    view: type[ReplicaSet]
    controller: str
    # In events.
    component: str
    queue: str


REPLICA_SET = OwnerKind(
    REPLICA_SETS, ReplicaSet, "replicaset-controller", "replicaset-controller", "replicaset"
)
REPLICATION_CONTROLLER = OwnerKind(
    REPLICATION_CONTROLLERS,
    ReplicationController,
    "replicationcontroller-controller",
    "replication-controller",
    "replicationmanager",
)


class ReplicaSetController:
    def __init__(
        self, plane: ControlPlane, *, kind: OwnerKind = REPLICA_SET, workers: int = 5, burst: int = _BURST
    ) -> None:
        self.name = kind.controller
        self._kind = kind
        self._client = plane.client
        self._clock = plane.clock
        self._burst = burst
        self._replica_sets = plane.informer(kind.ref, view=kind.view, indexers=INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._writes = OwnWrites({kind.ref: self._replica_sets, PODS: self._pods})
        self._status = StatusWriter(plane.client, kind.ref, self._writes)
        on_write = note_pods(self._writes, kind.ref)
        self._control = PodControl(plane.client, plane.recorder(kind.component), on_write=on_write)
        self._expectations = UidTrackedExpectations()
        self._uncertain = UncertainCreates(plane.client, self._pods.cache, self._expectations)
        # Keys whose last burst succeeded completely, with more to create: no slow start for the next one.
        self._skips_slow_start: set[Key] = set()
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue(kind.queue)
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        owners = self._replica_sets.cache
        self._replica_sets.add_handler(Enqueue(self.queue, self._forget))
        self._pods.add_handler(
            PodEventHandler(kind.ref, owners, self.queue, self._expectations, matters=affects_status)
        )

    async def run(self) -> None:
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        """Raises InvalidInputError for an invalid selector, and errors of creations and deletions."""
        replica_set = self._replica_sets.cache.get(*key)
        if replica_set is None:
            self._forget(key)
            return None
        if not (self._pods.is_live and self._replica_sets.is_live and self._writes.is_seen(key)):
            # Expectations expire, but a stale cache must not be used then.
            return Again(CATCH_UP_SECONDS)
        owner = owner_of(replica_set, self._kind.ref)
        await self._uncertain.settle(key, owner)
        # Checked before the pods are read: events during the claim are not in the pods that were read.
        may_act = self._expectations.is_satisfied(key) and not owner.is_deleting
        pods = await self._claim(replica_set, owner)
        failure: PodlifeError | None = None
        if may_act:
            try:
                await self._manage(key, replica_set, owner, pods.active)
            except PodlifeError as error:
                failure = error
        again = await self._write_status(replica_set, pods, failure)
        if failure is not None:
            raise failure
        return again

    async def _claim(self, replica_set: ReplicaSet, owner: Owner) -> Sorted:
        """Its pods, after adopting and releasing."""
        selector = replica_set.valid_selector(f"{self._kind.ref.kind} {owner.namespace}/{owner.name}")
        orphans = self._pods.cache.by_index(BY_CONTROLLER, controller_index_key(owner.namespace, None))
        owned = pods_of_owner(self._pods.cache, owner)
        pods = sort_pods(owned, orphans, selector, template_labels(replica_set))
        if pods.claimable:
            can_adopt = recheck_owner(self._client, self._kind.ref, owner)
            references = ControllerRefManager[WorkloadPod](
                owner, selector, self._control.patch_pod, can_adopt=can_adopt
            )
            pods.active.extend(await references.claim_all(pods.claimable))
        return pods

    async def _manage(
        self, key: Key, replica_set: ReplicaSet, owner: Owner, active: Sequence[WorkloadPod]
    ) -> None:
        missing = replica_set.spec.replicas - len(active)
        if missing > 0:
            await self._create(key, replica_set, owner, min(missing, self._burst))
        elif missing < 0:
            surplus = self._deletion_order(replica_set, active)[: min(-missing, self._burst)]
            await delete_expected(self._expectations, key, surplus, lambda pod: self._delete(owner, pod))

    async def _create(self, key: Key, replica_set: ReplicaSet, owner: Owner, count: int) -> None:
        reference = owner.controller_ref()
        # The same body for all: the server generates the names.
        pod = pod_from_template(replica_set.spec.template, owner, reference)
        create = CreateUntilTerminating(
            lambda: self._control.create_pod(owner.namespace, pod, owner, reference)
        )
        first = count if key in self._skips_slow_start else INITIAL_BATCH
        self._skips_slow_start.discard(key)
        await create_expected(
            self._expectations, key, count, create, uncertain=self._uncertain, initial_batch=first
        )
        if count == self._burst and not create.is_terminating:
            self._skips_slow_start.add(key)

    async def _delete(self, owner: Owner, pod: WorkloadPod) -> None:
        await self._control.delete_pod(owner.namespace, pod.metadata.name, owner, uid=pod.metadata.uid)

    def _deletion_order(
        self, replica_set: ReplicaSet, active: Sequence[WorkloadPod]
    ) -> Sequence[WorkloadPod]:
        """Pods in deletion order: among others, those on nodes with many pods of the same Deployment first."""
        if replica_set.spec.replicas == 0:
            # All are deleted: no order needed.
            return active
        neighbours: Counter[str] = Counter()
        for uid in _controller_uid(replica_set):
            for related in self._replica_sets.cache.by_index(BY_CONTROLLER_UID, uid):
                pods = pods_of_owner(self._pods.cache, owner_of(related, self._kind.ref))
                neighbours.update(pod.spec.node_name for pod in pods if is_active(pod))
        ranks = [neighbours[pod.spec.node_name] for pod in active]
        return deletion_order_with_ranks(active, ranks, self._clock.now())

    async def _write_status(
        self, replica_set: ReplicaSet, pods: Sorted, failure: PodlifeError | None
    ) -> Again | None:
        """Write the status; returns when it changes without an event."""
        now = self._clock.now()
        status = new_status(replica_set, pods.active, pods.terminating, failure, now)
        await self._status.write(replica_set, status)
        seconds = replica_set.spec.min_ready_seconds
        return again_when_available(pods.active, seconds, status, now, self._clock)

    def _forget(self, key: Key) -> None:
        self._expectations.forget(key)
        self._writes.forget(key)
        self._skips_slow_start.discard(key)
        self._uncertain.forget(key)
