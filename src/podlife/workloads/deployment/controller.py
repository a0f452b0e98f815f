"""Deployment controller: replaces the pods of one template by those of another, by scaling ReplicaSets.

Each reconcile claims the ReplicaSets, decides one step (`decision`), executes it and writes the status. The
controller's own writes must be in its caches before it decides again, and nothing is decided while the caches are
stale. Pods belong to the ReplicaSets: only the Recreate strategy reads them.
"""

from __future__ import annotations

from dataclasses import replace

from podlife.api.views import controller_of
from podlife.client import DEPLOYMENTS, PODS, REPLICA_SETS
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.errors import ConflictError, NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    BY_NAMESPACE,
    POD_INDEXERS,
    NamespaceTerminatingError,
    is_terminal,
    owner_of,
    pods_of_owner,
)
from podlife.workloads.deployment.annotations import (
    REVISION,
    annotations_of_new,
    highest_revision,
    plan_rollback,
    rollback_revision,
    size_annotations,
)
from podlife.workloads.deployment.decision import next_step
from podlife.workloads.deployment.rollout import Rollout, RolloutStep, make_replica_set, rollout_of
from podlife.workloads.deployment.status import (
    conditions_before,
    created,
    creation_failed,
    new_status,
    seconds_to_deadline,
    with_progress,
)
from podlife.workloads.deployment.views import RECREATE, Deployment
from podlife.workloads.deployment.writer import DeploymentWriter, HashCollisionError, NotSeenYetError
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, PodEventHandler, key_of
from podlife.workloads.replicaset.controller import INDEXERS
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.status import CATCH_UP_SECONDS, next_collision_count
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import RateLimitedQueue


class DeploymentController:
    name = "deployment-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._deployments = plane.informer(DEPLOYMENTS, view=Deployment, indexers=OWNER_INDEXERS)
        self._replica_sets = plane.informer(REPLICA_SETS, view=ReplicaSet, indexers=INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._own_writes = OwnWrites({DEPLOYMENTS: self._deployments, REPLICA_SETS: self._replica_sets})
        self._writes = DeploymentWriter(plane.client, plane.recorder(self.name), self._own_writes)
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("deployment")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._deployments.add_handler(Enqueue(self.queue))
        self._owned = PodEventHandler(DEPLOYMENTS, self._deployments.cache, self.queue)
        self._replica_sets.add_handler(self._owned)
        self._pods.add_handler(self)

    async def run(self) -> None:
        await self.controller.run()

    # The pod informer's handler: a Recreate Deployment waits for the last pod of its old template to be gone. Events of
    # ReplicaSets cover everything else.

    def on_add(self, pod: WorkloadPod) -> None:
        pass

    def on_update(self, old: WorkloadPod, new: WorkloadPod) -> None:
        pass

    def on_delete(self, pod: WorkloadPod) -> None:
        reference = controller_of(pod.metadata)
        if reference is None or reference.kind != REPLICA_SETS.kind:
            return
        replica_set = self._replica_sets.cache.get(pod.metadata.namespace, reference.name)
        if replica_set is None or replica_set.metadata.uid != reference.uid:
            return
        above = controller_of(replica_set.metadata)
        deployment = None if above is None else self._owned.owner(pod.metadata.namespace, above)
        if deployment is not None and deployment.spec.strategy.type == RECREATE:
            self.queue.add(key_of(deployment))

    async def reconcile(self, key: Key) -> Again | None:
        deployment = self._deployments.cache.get(*key)
        if deployment is None:
            self._own_writes.forget(key)
            return None
        caches = (self._deployments, self._replica_sets, self._pods)
        if not all(cache.is_live for cache in caches) or not self._own_writes.is_seen(key):
            return Again(CATCH_UP_SECONDS)
        try:
            return await self._sync(deployment)
        except (ConflictError, NotFoundError, NotSeenYetError):
            # A conflict: the event of the other write is on its way.
            return Again(CATCH_UP_SECONDS)
        except NamespaceTerminatingError:
            # The namespace is terminating: retries cannot succeed, and no event is needed.
            return None

    async def _sync(self, deployment: Deployment) -> Again | None:
        key = key_of(deployment)
        selector = deployment.valid_selector(f"deployment {'/'.join(key)} has an invalid label selector")
        if selector.is_empty:
            await self._refuse_selecting_all(deployment)
            return None
        known = self._replica_sets.cache.by_index(BY_NAMESPACE, deployment.metadata.namespace)
        claimed = await self._writes.claim(deployment, selector, known)
        if not self._own_writes.is_seen(key):
            # Adopted and released objects have changed: the cached version cannot be written.
            return Again(CATCH_UP_SECONDS)
        rollout = await self._mark_new(self._with_pods(deployment, claimed))
        revision = rollback_revision(deployment)
        is_working = not deployment.spec.paused and not deployment.is_deleting
        if revision is not None and is_working and rollout.new is not None:
            await self._writes.roll_back(deployment, plan_rollback(rollout, revision))
            return None
        return await self._take(rollout, next_step(rollout))

    # Reading

    def _with_pods(self, deployment: Deployment, replica_sets: list[ReplicaSet]) -> Rollout:
        rollout = rollout_of(deployment, replica_sets)
        old_pods = (
            pod
            for replica_set in rollout.old
            for pod in pods_of_owner(self._pods.cache, owner_of(replica_set, REPLICA_SETS))
        )
        has_old_pods = any(not is_terminal(pod) for pod in old_pods)
        return Rollout(deployment, rollout.new, rollout.old, has_old_pods)

    # Acting

    async def _mark_new(self, rollout: Rollout) -> Rollout:
        """Set the revision and the Deployment's annotations on the new ReplicaSet."""
        deployment, new = rollout.deployment, rollout.new
        if new is None:
            return rollout
        known, seconds = new.metadata.annotations, deployment.spec.min_ready_seconds
        wanted = annotations_of_new(deployment, known, highest_revision(rollout.old) + 1)
        if wanted == known and new.spec.min_ready_seconds == seconds:
            return rollout
        marked = await self._writes.change(deployment, new, wanted, min_ready_seconds=seconds)
        return replace(rollout, new=marked)

    async def _take(self, rollout: Rollout, step: RolloutStep) -> Again | None:
        deployment, now = rollout.deployment, self._clock.now()
        conditions = conditions_before(rollout, now)
        if step.create is not None:
            rollout = replace(rollout, new=(made := await self._create(rollout, step.create)))
            conditions = created(deployment, conditions, made.metadata.name, now)
        for scale in step.scale:
            await self._writes.scale(deployment, scale)
        for replica_set in step.remove:
            await self._writes.remove(replica_set)
        status = new_status(rollout, conditions, now)
        if step.reports_progress:
            status = with_progress(rollout, conditions, status, now)
        await self._writes.status.write(deployment, status, _revision(rollout))
        seconds = seconds_to_deadline(deployment, status, now) if step.reports_progress else None
        return None if seconds is None else Again.by_clock(seconds)

    async def _create(self, rollout: Rollout, replicas: int) -> ReplicaSet:
        """Create the ReplicaSet; a failure is written to the status and raised."""
        deployment = rollout.deployment
        revision = highest_revision(rollout.old) + 1
        annotations = annotations_of_new(deployment, size_annotations(deployment), revision)
        wanted = make_replica_set(deployment, replicas, annotations)
        try:
            return await self._writes.create(deployment, wanted)
        except (NotSeenYetError, NamespaceTerminatingError):
            raise
        except HashCollisionError:
            collisions = next_collision_count(deployment.status.get("collisionCount"))
            await self._writes.status.write(deployment, {**deployment.status, "collisionCount": collisions})
            raise
        except PodlifeError as error:
            await self._report_creation_failure(rollout, wanted["metadata"]["name"], error)
            raise

    async def _report_creation_failure(self, rollout: Rollout, name: str, error: PodlifeError) -> None:
        deployment, now = rollout.deployment, self._clock.now()
        message = f'Failed to create new replica set "{name}": {error}'
        conditions = creation_failed(deployment, conditions_before(rollout, now), message, now)
        await self._writes.status.write(deployment, {**deployment.status, "conditions": conditions})
        self._writes.record_event(deployment, "Warning", "ReplicaSetCreateError", message)

    async def _refuse_selecting_all(self, deployment: Deployment) -> None:
        message = "This deployment is selecting all pods. A non-empty selector is required."
        self._writes.record_event(deployment, "Warning", "SelectingAll", message)
        generation = deployment.metadata.generation
        if (deployment.status.get("observedGeneration") or 0) < generation:
            await self._writes.status.write(
                deployment, {**deployment.status, "observedGeneration": generation}
            )


def _revision(rollout: Rollout) -> dict[str, str]:
    revision = rollout.new.metadata.annotations.get(REVISION) if rollout.new is not None else None
    return {} if revision is None else {REVISION: revision}
