"""Which resizes a node allocates, in which order, and what a restarted kubelet knows of them."""

from __future__ import annotations

from typing import Any

from podlife.kubelet.admission import Admitter
from podlife.kubelet.allocation import AllocationManager, reported_allocation
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_events import PodEvents

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}}}


def pod(uid: str, cpu: str, *, generation: int = 1, status: Any = None, **spec: Any) -> NodePod:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": uid, "namespace": "d", "uid": uid, "generation": generation}
    return NodePod(
        {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": status or {}}
    )


class Node:
    def __init__(self) -> None:
        self.pods: dict[str, NodePod] = {}
        self.told: list[tuple[str, str]] = []
        self.synced: list[str] = []
        admitter = Admitter(lambda: NODE)
        self.manager = AllocationManager(admitter, self.pods.get, PodEvents(self), self.synced.append)

    def event(self, regarding: Any, type_: str, reason: str, message: str) -> None:
        self.told.append((regarding["name"], reason))

    def add(self, *pods: NodePod) -> None:
        for each in pods:
            self.pods[each.uid] = each
            assert self.manager.admitter.admit(reported_allocation(each)) is None
            self.manager.add(each)

    def resize(self, *pods: NodePod) -> None:
        for each in pods:
            self.pods[each.uid] = each
            self.manager.update(each)

    def cpu(self, uid: str) -> str:
        allocated = self.manager.allocated(self.pods[uid])
        return str(allocated["spec"]["containers"][0]["resources"]["requests"]["cpu"])


async def test_important_pods_are_resized_first_and_shrinking_ones_before_all() -> None:
    node = Node()
    node.add(*(pod(each, "1") for each in ("low", "high", "first", "shrinks")))
    node.resize(
        pod("low", "2", generation=2, priority=1),
        pod("first", "2", generation=2, priority=5),
        pod("high", "2", generation=2, priority=9),
        pod("shrinks", "100m", generation=2),
    )
    # Nothing is allocated before all pods of the node are known.
    assert [node.cpu(each) for each in node.pods] == ["1"] * 4
    node.manager.is_enabled = True
    node.manager.retry()
    assert {each: node.cpu(each) for each in node.pods} == {
        "low": "1",
        "high": "1",
        "first": "1",
        "shrinks": "100m",
    }
    assert node.synced == ["shrinks", "high", "first", "low"]
    node.manager.release("first")
    assert (node.cpu("high"), node.cpu("low")) == ("2", "1")
    # Each resize is reported once, however often it is evaluated.
    assert node.told.count(("low", "ResizeDeferred")) == 1
    [condition] = node.manager.conditions("low")
    assert (condition["reason"], condition["observedGeneration"]) == ("Deferred", 2)


async def test_a_restarted_kubelet_admits_what_was_allocated_and_goes_on() -> None:
    shown = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "lastTransitionTime": "t"}
    node = Node()
    node.add(pod("other", "3"))
    node.add(pod("p", "2", generation=2, status={"containerStatuses": [shown], "conditions": [pending]}))
    assert node.cpu("p") == "1"
    assert node.manager.conditions("p") == [
        {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    ]
    node.manager.is_enabled = True
    node.manager.release("other")
    assert node.cpu("p") == "2"
    assert [each["type"] for each in node.manager.conditions("p")] == ["PodResizeInProgress"]


async def test_an_equal_spec_is_no_resize() -> None:
    node = Node()
    node.manager.is_enabled = True
    made = pod("p", "1")
    made["spec"]["containers"][0]["resources"]["limits"] = {}
    node.add(made)
    node.resize(pod("p", "1", generation=2), made)
    assert (node.told, node.synced, node.manager.conditions("p")) == ([], [], [])
