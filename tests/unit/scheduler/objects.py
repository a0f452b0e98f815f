"""Pods and nodes for the tests of the scheduler, in few words."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.scheduler.demand import demand_of
from podlife.scheduler.node_cache import NodeCache
from podlife.scheduler.schedule_algorithm import ScheduleAlgorithm, unschedulable_message
from podlife.scheduler.views import SchedulerNode, SchedulerPod
from tests.kit import objects

_count = iter(range(10**9))


def node_object(name: str, *, labels: dict[str, str] | None = None, **changes: Any) -> Object:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **changes.pop("allocatable", {})}
    marked = {"kubernetes.io/hostname": name, **(labels or {})}
    return objects.node(name, metadata={"labels": marked}, status={"allocatable": allocatable}, **changes)


def pod_object(name: str = "", *, cpu: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    number = next(_count)
    container = objects.container(**({"resources": {"requests": {"cpu": cpu}}} if cpu else {}))
    metadata: Object = {"labels": labels or {}, "uid": f"u{number}"}
    if owner := spec.pop("owner", ""):
        metadata["ownerReferences"] = [objects.owner("ReplicaSet", owner, uid=owner)]
    return objects.stored(objects.pod(name or f"p{number}", container, metadata=metadata, **spec))


def node(name: str, **changes: Any) -> SchedulerNode:
    return objects.read(node_object(name, **changes), SchedulerNode)


def pod(name: str = "", **changes: Any) -> SchedulerPod:
    return objects.read(pod_object(name, **changes), SchedulerPod)


class Place:
    """Nodes, and pods that are put on them."""

    def __init__(self, *nodes: SchedulerNode) -> None:
        self.nodes = NodeCache()
        for each in nodes:
            self.nodes.put_node(each)
        self.decider = ScheduleAlgorithm(self.nodes)

    def put(self, one: SchedulerPod) -> str:
        """The node that it went to, or why it went to none."""
        demand = demand_of(one)
        decided = self.decider.decide(demand)
        if not isinstance(decided, str):
            return unschedulable_message(len(self.nodes), decided)
        self.nodes.put_pod(one.metadata.uid, demand, decided)
        return decided
