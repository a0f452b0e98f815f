"""ReplicaSet controller: keeps a number of pods of one template running."""

from podlife.workloads.replicaset.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]
