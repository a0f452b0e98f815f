"""On which nodes daemon pods belong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.testing import VirtualTimeLoop, virtual_time
from podlife.workloads.daemonset.placement import NodeFit, Placement, Placements, all_fits
from podlife.workloads.daemonset.views import DaemonNode, DaemonNodeTaint
from tests.unit.workloads.daemonset.pods import daemon_set, node

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
