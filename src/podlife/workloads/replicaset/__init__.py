"""ReplicaSets: as many pods of one template as are asked for."""

from podlife.workloads.replicaset.controller import ReplicaSetController

__all__ = ["ReplicaSetController"]
