"""What is to be done about all nodes at once."""

from __future__ import annotations

from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import (
    DaemonRevision,
    DaemonSetPlan,
    by_node,
    has_changed,
    oldest_first,
    plan_nodes,
)
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.daemonset.pods import NEW, NOW, OLD, names, pod

RUN, STAY, NOT = NodeFit.SHOULD_RUN, NodeFit.MAY_STAY, NodeFit.MUST_NOT
IN_PLACE = DaemonRevision(NEW)
SURGE = DaemonRevision(NEW, min_ready_seconds=10, is_surging=True)


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


def change(fit: NodeFit, *pods: WorkloadPod, revision: DaemonRevision = IN_PLACE) -> DaemonSetPlan:
    """Of the only node."""
    return plan_nodes({"n1": pods}, {"n1": fit}, revision, NOW)


def ended(found: list[tuple[str, WorkloadPod]]) -> list[str]:
    return names([pod for _, pod in found])


def test_node_without_a_pod_gets_one_only_if_it_should_run_it() -> None:
    assert change(RUN).create_on == ["n1"]
    assert change(STAY) == change(NOT) == DaemonSetPlan()


def test_pod_on_a_node_where_it_must_not_be_is_deleted_once() -> None:
    assert names(change(NOT, pod("a"), pod("b", going=True)).delete) == ["a"]


def test_pod_on_a_node_that_takes_no_new_ones_stays() -> None:
    assert change(STAY, pod("a")) == DaemonSetPlan()


def test_of_too_many_pods_the_oldest_that_is_on_the_node_stays() -> None:
    pods = [pod("young", age=1), pod("unbound", age=900, is_bound=False), pod("old", age=500)]
    assert names(change(RUN, *pods).delete) == ["young", "unbound"]
    assert names(oldest_first([pod("b", age=5), pod("a", age=5)])) == ["a", "b"]


def test_pod_that_is_going_keeps_the_next_one_away() -> None:
    assert change(RUN, pod("a", going=True)) == DaemonSetPlan()


def test_pods_that_have_ended_are_told_apart_and_do_not_count_as_running() -> None:
    found = change(RUN, pod("f", phase="Failed"), pod("s", phase="Succeeded"), pod("a"))
    assert (ended(found.failed), ended(found.succeeded), found.delete) == (["f"], ["s"], [])
    assert found.create_on == []


def test_pod_that_is_going_does_not_keep_a_surge_away() -> None:
    assert change(RUN, pod("a", going=True), revision=SURGE).create_on == ["n1"]
    assert change(STAY, pod("a", going=True), revision=SURGE).create_on == []
    # One that failed is deleted, and another one may come at once.
    failed = change(RUN, pod("a", phase="Failed"), revision=SURGE)
    assert (failed.create_on, ended(failed.failed)) == (["n1"], ["a"])


def test_surge_keeps_the_old_pod_while_it_serves_and_the_new_one_does_not() -> None:
    old = pod("old", revision=OLD, ready_for=50)
    assert change(RUN, old, pod("new"), revision=SURGE) == DaemonSetPlan()
    # Ready, but not for ten seconds yet.
    assert change(RUN, old, pod("new", ready_for=9), revision=SURGE) == DaemonSetPlan()
    assert names(change(RUN, old, pod("new", ready_for=10), revision=SURGE).delete) == ["old"]
    assert names(change(RUN, pod("old", revision=OLD), pod("new"), revision=SURGE).delete) == ["old"]


def test_surge_keeps_one_pod_of_each_revision_at_most() -> None:
    pods = [
        pod("old-1", revision=OLD, ready_for=50, age=90),
        pod("old-2", revision=OLD, ready_for=50, age=80),
        pod("new-1", age=20),
        pod("new-2", age=10),
    ]
    assert names(change(RUN, *pods, revision=SURGE).delete) == ["new-2", "old-2"]
    assert names(change(RUN, *pods[2:], revision=SURGE).delete) == ["new-2"]


def test_pods_are_grouped_by_the_node_they_are_on_or_for() -> None:
    nowhere = pod("nowhere", on="")
    ended = pod("ended", phase="Failed", going=True)
    found = by_node([pod("a"), pod("b", on="n2", is_bound=False), nowhere, ended, pod("going", going=True)])
    assert {name: names(pods) for name, pods in found.items()} == {"n1": ["a", "going"], "n2": ["b"]}


def test_pod_wakes_its_daemon_set_when_it_plays_another_part_and_not_for_what_else_is_said_of_it() -> None:
    ready = pod("a", ready_for=5)
    said = pod("a", ready_for=5)
    said.status.message = "the kubelet has more to say"
    assert not has_changed(ready, said)
    assert has_changed(ready, pod("a"))
    assert has_changed(ready, pod("a", ready_for=6))
    assert has_changed(pod("a", phase="Pending"), pod("a"))
    assert has_changed(pod("a", is_bound=False), pod("a"))
