"""The last pod of an old template tells a Deployment that recreates that it may go on."""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import DEPLOYMENTS, REPLICA_SETS
from podlife.informer import CacheReader
from podlife.informer.indexes import Key
from podlife.workloads.deployment.views import RECREATE, Deployment
from podlife.workloads.pod_event_handler import OwnedPods, key_of
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.views import Pod
from podlife.workqueue import Queue

__all__ = ["PodsGone"]


class PodsGone:
    """A handler for the informer of pods. The ReplicaSets' own events tell everything else."""

    def __init__(
        self,
        owners: OwnedPods[Deployment],
        replica_sets: CacheReader[ReplicaSet],
        queue: Queue[Key],
    ) -> None:
        self._owners = owners
        self._replica_sets = replica_sets
        self._queue = queue

    def on_add(self, pod: Pod) -> None:
        pass

    def on_update(self, old: Pod, new: Pod) -> None:
        pass

    def on_delete(self, pod: Pod) -> None:
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
