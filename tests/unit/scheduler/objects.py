"""Pods and nodes for the tests of the scheduler, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from podlife.api.codec import Object, encode
from podlife.scheduler.demand import demand_of
from podlife.scheduler.node_cache import NodeCache
from podlife.scheduler.schedule_algorithm import ScheduleAlgorithm, no_room
from podlife.scheduler.views import SchedulerNode, SchedulerPod

_count = iter(range(10**9))


def node_object(name: str, *, labels: dict[str, str] | None = None, **changes: Any) -> Object:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **changes.pop("allocatable", {})}
    marked = {"kubernetes.io/hostname": name, **(labels or {})}
    return {
        "metadata": {"name": name, "labels": marked},
        "spec": changes,
        "status": {"allocatable": allocatable},
    }


def pod_object(name: str = "", *, cpu: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    number = next(_count)
    container: Object = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata: Object = {"name": name or f"p{number}", "namespace": "default", "uid": f"u{number}"}
    owner = spec.pop("owner", "")
    if owner:
        metadata["ownerReferences"] = [_reference(owner)]
    return {"metadata": {**metadata, "labels": labels or {}}, "spec": {"containers": [container], **spec}}


def _reference(owner: str) -> Object:
    kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    return {**kind, "name": owner, "uid": owner, "controller": True}


def node(name: str, **changes: Any) -> SchedulerNode:
    return msgspec.json.decode(encode(node_object(name, **changes)), type=SchedulerNode)


def pod(name: str = "", **changes: Any) -> SchedulerPod:
    return msgspec.json.decode(encode(pod_object(name, **changes)), type=SchedulerPod)


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
            return no_room(len(self.nodes), decided)
        self.nodes.put_pod(one.metadata.uid, demand, decided)
        return decided
