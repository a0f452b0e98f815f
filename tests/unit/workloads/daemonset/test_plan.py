"""What is to be done about all nodes at once."""

from __future__ import annotations

from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision, plan_nodes
from tests.unit.workloads.daemonset.pods import NEW, NOW, names, pod


def test_each_node_is_judged_by_its_own_pods() -> None:
    fits = {
        "bare": NodeFit.SHOULD_RUN,
        "fine": NodeFit.SHOULD_RUN,
        "wrong": NodeFit.MUST_NOT,
        "ended": NodeFit.SHOULD_RUN,
    }
    pods = {
        "fine": [pod("a")],
        "wrong": [pod("b")],
        "ended": [pod("c", phase="Failed"), pod("d", phase="Succeeded")],
    }
    plan = plan_nodes(pods, fits, DaemonRevision(NEW), NOW)
    assert (plan.create_on, names(plan.delete)) == (["bare"], ["b"])
    assert [(where, found.metadata.name) for where, found in plan.failed] == [("ended", "c")]
    assert [(where, found.metadata.name) for where, found in plan.succeeded] == [("ended", "d")]


def test_pods_for_a_node_that_is_gone_go_unless_they_are_on_it_or_going() -> None:
    pods = {"gone": [pod("bound"), pod("unbound", is_bound=False), pod("off", is_bound=False, going=True)]}
    plan = plan_nodes(pods, {}, DaemonRevision(NEW), NOW)
    assert names(plan.delete) == ["unbound"]
    assert not plan.create_on
