"""Pod event handler: enqueues a Recreate Deployment when the last pod of its old template is gone."""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import DEPLOYMENTS, REPLICA_SETS
from podlife.informer import CacheReader
from podlife.informer.indexes import Key
from podlife.workloads.deployment.views import RECREATE, Deployment
from podlife.workloads.pod_event_handler import PodEventHandler, key_of
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import Queue


class PodsGoneHandler:
    """A pod event handler. Events of the ReplicaSets cover everything else."""

    def __init__(
        self,
        owners: PodEventHandler[Deployment],
        replica_sets: CacheReader[ReplicaSet],
        queue: Queue[Key],
    ) -> None:
        self._owners = owners
        self._replica_sets = replica_sets
        self._queue = queue

    def on_add(self, pod: WorkloadPod) -> None:
        pass

    def on_update(self, old: WorkloadPod, new: WorkloadPod) -> None:
        pass

    def on_delete(self, pod: WorkloadPod) -> None:
        reference = controller_of(pod.metadata)
        if reference is None or reference.kind != REPLICA_SETS.kind:
            return
        replica_set = self._replica_sets.get(pod.metadata.namespace, reference.name)
        if replica_set is None or replica_set.metadata.uid != reference.uid:
            return
        above = controller_of(replica_set.metadata)
        if above is None or above.kind != DEPLOYMENTS.kind:
            return
        deployment = self._owners.owner(pod.metadata.namespace, above)
        if deployment is not None and deployment.spec.strategy.type == RECREATE:
            self._queue.add(key_of(deployment))
