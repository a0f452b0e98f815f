"""StatefulSets: pods with a name, a place in an order and volumes of their own."""

from podlife.workloads.statefulset.controller import StatefulSetController

__all__ = ["StatefulSetController"]
