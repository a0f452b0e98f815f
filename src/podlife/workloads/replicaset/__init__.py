"""ReplicaSet controller: keeps a number of pods of one template running, for ReplicaSets and ReplicationControllers."""

from functools import partial

from podlife.workloads.replicaset.controller import REPLICATION_CONTROLLER, ReplicaSetController

__all__ = ["ReplicaSetController", "ReplicationManager"]

# Upstream's name.
ReplicationManager = partial(ReplicaSetController, kind=REPLICATION_CONTROLLER)
