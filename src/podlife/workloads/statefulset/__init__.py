"""StatefulSet controller: pods with stable names, an order, and their own volumes."""

from podlife.workloads.statefulset.controller import StatefulSetController

__all__ = ["StatefulSetController"]
