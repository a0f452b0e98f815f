"""StatefulSet controller: pods with stable names, an order, and volumes of their own."""

from podlife.workloads.statefulset.controller import StatefulSetController

__all__ = ["StatefulSetController"]
