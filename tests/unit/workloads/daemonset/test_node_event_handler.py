"""Whom the event of a node wakes, and what is looked at for it."""

from __future__ import annotations

import itertools
from typing import Any

from podlife.api.views import OwnerReference
from podlife.workloads.daemonset.placement import NodeEventHandler, Placements
from podlife.workloads.daemonset.views import DaemonNode, DaemonNodeTaint, DaemonSet
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.daemonset.pods import daemon_set, node, pod


class Known:
    """A cache that notes what is asked of it."""

    def __init__(self, *objects: Any, has_synced: bool = True) -> None:
        self.objects = objects
        self.has_synced = has_synced
        self.asked: list[str] = []

    def list(self) -> tuple[Any, ...]:
        return self.objects

    def by_index(self, index: str, value: str) -> list[WorkloadPod]:
        self.asked.append(value)
        return [each for each in self.objects if each.spec.node_name == value]


def named(name: str, **selector: str) -> DaemonSet:
    made = daemon_set(spec={"nodeSelector": selector})
    made.metadata.name, made.metadata.uid = name, f"uid-{name}"
    return made


def owned(by: str, on: str) -> WorkloadPod:
    made = pod(f"{by}-{on}", on=on)
    made.metadata.owner_references = (OwnerReference("apps/v1", "DaemonSet", by, f"uid-{by}", True),)
    return made


class Woken(list[str]):
    def add(self, key: tuple[str, str]) -> None:
        self.append(key[1])


def events(*sets: DaemonSet, pods: Known | None = None, has_synced: bool = True) -> tuple[Any, Woken]:
    woken = Woken()
    nodes: Any = Known(has_synced=has_synced)
    caches: Any = (Known(*sets), pods or Known())
    return NodeEventHandler(nodes, *caches, Placements(), woken), woken


def change(old: DaemonNode, new: DaemonNode) -> list[str]:
    handler, woken = events(named("everywhere"), named("ssd", disk="ssd"), named("hdd", disk="hdd"))
    handler.on_update(old, new)
    return woken


def test_new_node_wakes_those_that_should_run_there_and_those_that_do_already() -> None:
    pods = Known(owned("left", "n1"), owned("hdd", "n2"))
    handler, woken = events(
        named("everywhere"),
        named("ssd", disk="ssd"),
        named("hdd", disk="hdd"),
        named("left", gone="1"),
        pods=pods,
    )
    handler.on_add(node("n1", disk="ssd"))
    assert woken == ["everywhere", "ssd", "left"]
    assert pods.asked == ["n1"], "pods of no other node are looked at"


def test_node_that_goes_wakes_those_that_should_run_there_and_those_that_do() -> None:
    handler, woken = events(
        named("ssd", disk="ssd"), named("left", gone="1"), pods=Known(owned("left", "n1"))
    )
    handler.on_delete(node("n1", disk="ssd"))
    handler.on_delete(node("n2"))
    assert woken == ["ssd", "left"]


def test_nodes_of_the_first_list_wake_nobody_since_everybody_comes_anyway() -> None:
    handler, woken = events(named("everywhere"), has_synced=False)
    handler.on_add(node("n1"))
    assert woken == []


def test_change_wakes_only_those_to_whom_the_node_is_another_one() -> None:
    plain, ssd, hdd = node("n1"), node("n1", disk="ssd"), node("n1", disk="hdd")
    assert change(plain, ssd) == ["ssd"]
    assert change(ssd, hdd) == ["ssd", "hdd"]
    assert change(ssd, node("n1", disk="ssd", zone="a")) == []
    closed = node("n1", DaemonNodeTaint("maintenance", "", "NoSchedule"), disk="ssd")
    driven_out = node("n1", DaemonNodeTaint("maintenance", "", "NoExecute"), disk="ssd")
    for one, other in itertools.permutations((ssd, closed, driven_out), 2):
        assert change(one, other) == ["everywhere", "ssd"]


def test_change_looks_at_no_pod() -> None:
    pods = Known(owned("everywhere", "n1"))
    handler, woken = events(named("everywhere"), pods=pods)
    handler.on_update(node("n1"), node("n1", DaemonNodeTaint("maintenance", "", "NoExecute")))
    assert (woken, pods.asked) == (["everywhere"], [])


def test_heartbeat_asks_nobody() -> None:
    placements: Any = None
    caches: Any = (Known(named("everywhere")), Known())
    nodes: Any = Known()
    # There is nothing that could be asked.
    NodeEventHandler(nodes, *caches, placements, Woken()).on_update(node("n1"), node("n1"))
