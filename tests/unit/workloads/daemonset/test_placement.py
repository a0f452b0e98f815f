"""On which nodes daemon pods belong."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from podlife.api.views import OwnerReference
from podlife.testing import VirtualTimeLoop, virtual_time
from podlife.workloads.daemonset.placement import NodeEventHandler, NodeFit, Placement, Placements, all_fits
from podlife.workloads.daemonset.views import DaemonNode, DaemonNodeTaint, DaemonSet
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.daemonset.pods import daemon_set, node, pod

RUN, STAY, NOT = NodeFit.SHOULD_RUN, NodeFit.MAY_STAY, NodeFit.MUST_NOT


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expressions(*given: tuple[Any, ...]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": op, "values": list(v)} for key, op, *v in given]}


def fields(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "fit"),
    [
        ({}, RUN),
        ({"nodeName": "n1"}, RUN),
        ({"nodeName": "n2"}, NOT),
        ({"nodeSelector": {"disk": "ssd"}}, RUN),
        ({"nodeSelector": {"disk": "ssd", "zone": "a"}}, RUN),
        ({"nodeSelector": {"disk": "hdd"}}, NOT),
        ({"nodeSelector": {"gpu": ""}}, NOT),
        (required(expressions(("disk", "In", "ssd", "nvme"))), RUN),
        (required(expressions(("disk", "NotIn", "ssd"))), NOT),
        (required(expressions(("gpu", "NotIn", "ssd"))), RUN),
        (required(expressions(("disk", "Exists"))), RUN),
        (required(expressions(("disk", "DoesNotExist"))), NOT),
        (required(expressions(("cores", "Gt", "7"))), RUN),
        (required(expressions(("cores", "Gt", "8"))), NOT),
        (required(expressions(("cores", "Lt", "9"))), RUN),
        (required(expressions(("disk", "Gt", "1"))), NOT),
        (required(expressions(("disk", "Exists"), ("zone", "In", "b"))), NOT),
        (required(expressions(("zone", "In", "b")), expressions(("zone", "In", "a"))), RUN),
        (required(fields("In", "n1")), RUN),
        (required(fields("In", "n2")), NOT),
        (required(fields("NotIn", "n1")), NOT),
        (required(fields("NotIn", "n2")), RUN),
        (required(expressions(("zone", "In", "a")) | fields("In", "n2")), NOT),
        # What selects nothing at all, and what cannot be read, matches no node.
        (required(), NOT),
        (required({}), NOT),
        (required(expressions(("disk", "In"))), NOT),
        (required(expressions(("disk", "Like", "s*"))), NOT),
        (required(expressions(("cores", "Gt", "many"))), NOT),
        (required(fields("In", "n1", "n2")), NOT),
        (required(fields("In", "n1", key="metadata.uid")), NOT),
        (required(expressions(("disk", "Like", "s*")), fields("In", "n1")), RUN),
        ({"nodeSelector": {"disk": "ssd"}} | required(fields("In", "n2")), NOT),
    ],
)
def test_pod_belongs_where_selector_and_affinity_match(spec: dict[str, Any], fit: NodeFit) -> None:
    assert Placement({"spec": spec}).fit(node("n1", disk="ssd", zone="a", cores="8")) is fit


def test_preferred_affinity_keeps_no_pod_away() -> None:
    preference = {"weight": 1, "preference": expressions(("disk", "In", "hdd"))}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    assert Placement({"spec": {"affinity": affinity}}).fit(node()) is RUN


@pytest.mark.parametrize(
    ("taint", "fit"),
    [
        (DaemonNodeTaint("node.kubernetes.io/not-ready", "", "NoExecute"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/not-ready", "", "NoSchedule"), STAY),
        (DaemonNodeTaint("node.kubernetes.io/unreachable", "", "NoExecute"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/disk-pressure", "", "NoSchedule"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/memory-pressure", "", "NoSchedule"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/pid-pressure", "", "NoSchedule"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule"), RUN),
        (DaemonNodeTaint("node.kubernetes.io/network-unavailable", "", "NoSchedule"), STAY),
        (DaemonNodeTaint("dedicated", "db", "NoSchedule"), STAY),
        (DaemonNodeTaint("dedicated", "db", "NoExecute"), NOT),
        (DaemonNodeTaint("dedicated", "db", "PreferNoSchedule"), RUN),
    ],
)
def test_daemons_bear_what_is_wrong_with_a_node_and_no_other_taints(
    taint: DaemonNodeTaint, fit: NodeFit
) -> None:
    assert Placement({"spec": {}}).fit(node("n1", taint)) is fit


@pytest.mark.parametrize(
    ("toleration", "fit"),
    [
        ({"operator": "Exists"}, RUN),
        ({"key": "dedicated", "operator": "Exists"}, RUN),
        ({"key": "dedicated", "value": "db"}, RUN),
        ({"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoExecute"}, RUN),
        ({"key": "dedicated", "operator": "Equal", "value": "web"}, NOT),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, NOT),
        ({"key": "other", "operator": "Exists"}, NOT),
        ({"key": "dedicated", "operator": "Lt", "value": "7"}, NOT),
    ],
)
def test_template_may_tolerate_more(toleration: dict[str, Any], fit: NodeFit) -> None:
    placement = Placement({"spec": {"tolerations": [toleration]}})
    assert placement.fit(node("n1", DaemonNodeTaint("dedicated", "db", "NoExecute"))) is fit


def test_network_that_is_not_there_yet_is_no_matter_to_pods_on_the_hosts_network() -> None:
    taint = DaemonNodeTaint("node.kubernetes.io/network-unavailable", "", "NoSchedule")
    assert Placement({"spec": {"hostNetwork": True}}).fit(node("n1", taint)) is RUN


def test_placement_is_read_again_when_the_spec_or_the_daemon_set_is_another() -> None:
    placements = Placements()
    first = daemon_set(spec={"nodeName": "n1"})
    assert placements.of(first) is placements.of(first)
    assert placements.of(first).fit(node("n1")) is RUN
    changed = daemon_set(spec={"nodeName": "n2"})
    changed.metadata.generation = 2
    assert placements.of(changed).fit(node("n1")) is NOT
    again = daemon_set(spec={"nodeName": "n1"})
    again.metadata.uid, again.metadata.generation = "another", 2
    assert placements.of(again).fit(node("n1")) is RUN


class Slow(Placement):
    """Takes two hundredths of a second for each node, as one of thousands of terms does."""

    def fit(self, node: DaemonNode) -> NodeFit:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.jump(0.02)
        return super().fit(node)


@virtual_time
async def test_others_have_their_turn_while_many_nodes_are_held_against_many_terms() -> None:
    turns = 0
    placement = Slow({"spec": {}})
    looking = asyncio.get_running_loop().create_task(
        all_fits(placement, [node(f"n{number}") for number in range(50)])
    )
    while not looking.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 50
    assert looking.result() == {f"n{number}": RUN for number in range(50)}


class Known:
    """A cache that notes what is asked of it."""

    def __init__(self, *objects: Any, has_synced: bool = True) -> None:
        self.objects = objects
        self.has_synced = has_synced
        self.asked: list[str] = []

    def list(self) -> tuple[Any, ...]:
        return self.objects

    def by_index(self, index: str, value: str) -> Sequence[WorkloadPod]:
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
    wanted: Any = Known(*sets)
    owned: Any = pods or Known()
    return NodeEventHandler(nodes, wanted, owned, Placements(), woken), woken


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
    sets: Any = Known(named("everywhere"))
    nothing: Any = Known()
    # There is nothing that could be asked.
    NodeEventHandler(nothing, sets, nothing, placements, Woken()).on_update(node("n1"), node("n1"))
