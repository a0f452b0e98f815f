"""Which node a pod goes to, and what it is told when there is none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.scheduler.demand import demand_of
from podlife.scheduler.schedule_algorithm import ScheduleAlgorithm, obstacles
from podlife.scheduler.views import SchedulerTaint
from tests.unit.scheduler.objects import Place, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def near(kind: str, key: str, **labels: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {REQUIRED: [term]}}


def test_without_nodes_it_is_told_so() -> None:
    assert Place().put(pod()) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("changes", "asked", "told"),
    [
        ({"unschedulable": True}, {}, "1 node(s) were unschedulable"),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}, "1 node(s) had untolerated taint(s)"),
        ({"taints": [{"key": "k", "effect": "NoExecute"}]}, {}, "1 node(s) had untolerated taint(s)"),
        ({}, {"nodeSelector": {"disk": "ssd"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        ({}, {"cpu": "5"}, "1 Insufficient cpu"),
        ({"allocatable": {"pods": "0"}}, {"cpu": "5"}, "1 Insufficient cpu, 1 Too many pods"),
    ],
)
def test_a_pod_that_fits_nowhere_is_told_why(changes: Any, asked: Any, told: str) -> None:
    assert Place(node("a", **changes)).put(pod(**asked)) == f"0/1 nodes are available: {told}."


def test_reasons_are_counted_over_all_nodes() -> None:
    place = Place(
        node("a", unschedulable=True), node("b", unschedulable=True), node("c", allocatable={"cpu": "1"})
    )
    told = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable."
    assert place.put(pod(cpu="2")) == told


def test_a_toleration_and_a_matching_label_open_a_node() -> None:
    place = Place(
        node("a", labels={"disk": "ssd"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    )
    bears = [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]
    assert place.put(pod(tolerations=bears, nodeSelector={"disk": "ssd"})) == "a"


def test_a_cordoned_node_takes_pods_that_bear_it() -> None:
    bears = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert Place(node("a", unschedulable=True)).put(pod(tolerations=bears)) == "a"


def test_a_port_of_the_node_is_given_once() -> None:
    place = Place(node("a"))
    asked = [{"name": "c", "ports": [{"hostPort": 80}]}]
    assert place.put(pod(containers=asked)) == "a"
    assert "didn't have free ports" in place.put(pod(containers=asked))
    elsewhere = [{"name": "c", "ports": [{"hostPort": 80, "protocol": "UDP"}]}]
    assert place.put(pod(containers=elsewhere)) == "a"


def test_pods_of_one_owner_are_spread() -> None:
    place = Place(node("a"), node("b"), node("c"))
    counts = Counter(place.put(pod(owner="web")) for _ in range(9))
    assert counts == {"a": 3, "b": 3, "c": 3}


def test_the_emptier_node_is_taken_first() -> None:
    place = Place(node("a"), node("b"))
    place.put(pod(cpu="3"))
    assert place.put(pod(cpu="1")) == "b"


def test_a_preferred_node_goes_before_an_emptier_one() -> None:
    place = Place(node("a"), node("b", labels={"disk": "ssd"}))
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    wish = [{"weight": 10, "preference": term}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}}
    assert [place.put(pod(affinity=affinity)) for _ in range(3)] == ["b", "b", "b"]


def test_a_node_that_would_rather_have_none_is_taken_last() -> None:
    place = Place(node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("b"))
    assert place.put(pod()) == "b"


def test_anti_affinity_keeps_one_pod_per_node_and_others_out() -> None:
    place = Place(node("a"), node("b"))
    alone = near("podAntiAffinity", "kubernetes.io/hostname", app="db")
    assert {place.put(pod(labels={"app": "db"}, affinity=alone)) for _ in range(2)} == {"a", "b"}
    assert "2 node(s) didn't match pod anti-affinity rules" in place.put(
        pod(labels={"app": "db"}, affinity=alone)
    )
    # Whoever is kept away need not know of it.
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in place.put(
        pod(labels={"app": "db"})
    )
    assert place.put(pod(labels={"app": "other"})) in ("a", "b")


def test_affinity_puts_a_group_into_one_zone_and_the_first_anywhere() -> None:
    place = Place(
        node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"}), node("c", labels={"zone": "2"})
    )
    together = near("podAffinity", "zone", app="web")

    def zone_of(name: str) -> str:
        found = place.nodes.get(name)
        assert found is not None
        return found.labels["zone"]

    first = place.put(pod(labels={"app": "web"}, affinity=together))
    zone = zone_of(first)
    for _ in range(4):
        where = place.put(pod(labels={"app": "web"}, affinity=together))
        assert zone_of(where) == zone
    assert "3 node(s) didn't match pod affinity rules" in place.put(
        pod(labels={"app": "x"}, affinity=near("podAffinity", "zone", app="nobody"))
    )


def test_topology_spread_holds_the_zones_level() -> None:
    place = Place(node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"}), node("c"))
    spread = [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    counts = Counter(
        place.put(pod(labels={"app": "web"}, topologySpreadConstraints=spread)) for _ in range(6)
    )
    assert counts == {"a": 3, "b": 3}
    place.nodes.remove_node("b")
    place.nodes.put_node(node("b", labels={"zone": "2"}, unschedulable=True))
    assert place.put(pod(labels={"app": "web"}, topologySpreadConstraints=spread)) == "a"
    assert place.put(pod(labels={"app": "web"}, topologySpreadConstraints=spread)) == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) didn't match pod topology spread constraints (missing required label), "
        "1 node(s) were unschedulable."
    )


def test_sidecars_and_init_containers_count_by_their_largest_moment() -> None:
    def asks(cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    spec: dict[str, Any] = {
        "initContainers": [asks("1", restartPolicy="Always"), asks("3")],
        "containers": [asks("1")],
        "overhead": {"cpu": "500m"},
    }
    assert demand_of(pod(**spec)).requests == {"cpu": 4500}


def test_what_was_remembered_is_forgotten_with_the_change_of_a_node() -> None:
    place = Place(node("a", allocatable={"cpu": "1"}))
    assert place.put(pod(cpu="1")) == "a"
    assert "Insufficient cpu" in place.put(pod(cpu="1"))
    place.nodes.put_node(node("a", allocatable={"cpu": "2"}))
    assert place.put(pod(cpu="1")) == "a"
    place.nodes.put_node(node("a", allocatable={"cpu": "9"}, taints=[{"key": "k", "effect": "NoExecute"}]))
    assert "untolerated" in place.put(pod(cpu="1"))
    place.nodes.remove_node("a")
    assert place.put(pod(cpu="1")) == "no nodes available to schedule pods"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("gone"), st.integers(0, 30), st.booleans()),
        st.tuples(st.just("node"), st.integers(0, 4), st.booleans()),
        st.tuples(st.just("lost"), st.integers(0, 4), st.booleans()),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_no_node_is_ever_given_more_than_it_has_and_memory_never_changes_a_decision(
    steps: list[tuple[str, int, bool]],
) -> None:
    place = Place()
    put: list[str] = []
    for what, number, flag in steps:
        if what == "node":
            taints = [{"key": "k", "effect": "NoSchedule"}] if flag else []
            place.nodes.put_node(node(f"n{number}", allocatable={"cpu": "2", "pods": "3"}, taints=taints))
        elif what == "lost" and place.nodes.get(f"n{number}"):
            place.nodes.remove_node(f"n{number}")
        elif what == "gone" and number < len(put):
            place.nodes.remove_pod(put[number])
        elif what == "pod":
            one = pod(cpu=f"{number * 400}m", owner="web" if flag else "")
            demand = demand_of(one)
            # A decider without any memory is the oracle.
            assert ScheduleAlgorithm(place.nodes).decide(demand) == place.decider.decide(demand)
            before = {state.name: obstacles(demand, state) for state in place.nodes}
            where = place.put(one)
            if place.nodes.where(one.metadata.uid):
                assert before[where] == ()
                put.append(one.metadata.uid)
        for state in place.nodes:
            assert state.used["cpu"] <= state.allocatable["cpu"]
            assert len(state.pods) <= state.allocatable["pods"]


def test_a_taint_is_borne_by_key_value_and_effect() -> None:
    demand = demand_of(
        pod(tolerations=[{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}])
    )
    assert demand.tolerates(SchedulerTaint("k", "v", "NoSchedule"))
    assert not demand.tolerates(SchedulerTaint("k", "w", "NoSchedule"))
    assert not demand.tolerates(SchedulerTaint("k", "v", "NoExecute"))
