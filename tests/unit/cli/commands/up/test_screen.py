"""What `podlife up` shows of its cluster: a live view, and lines."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from podlife.cli.commands.up.lines import ChangeLines, Welcome, in_order, summary_of
from podlife.cli.commands.up.screen import draw
from podlife.clock import ManualClock
from podlife.localcluster.cluster_state import ClusterState
from podlife.localcluster.session import StartedCluster
from tests.unit.localcluster.test_cluster_state import disrupted, ending, node, pod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def state(clock: ManualClock) -> ClusterState:
    return ClusterState(clock)


def test_the_view_has_nodes_what_is_terminating_and_what_has_gone(
    state: ClusterState, clock: ManualClock
) -> None:
    state.of_nodes.on_add(node("n1"))
    state.of_nodes.on_add(node("n2", "Unknown", cordoned=True))
    state.of_pods.on_add(pod("a", "n1"))
    state.of_pods.on_add(pod("w", phase="Pending"))
    state.of_pods.on_add(ending("stuck", clock, "n2"))
    gone = pod("old", "n1", conditions=disrupted("DeletionByPodGC"))
    state.of_pods.on_add(gone)
    state.of_pods.on_delete(gone)
    drawn = io.StringIO()
    Console(file=drawn, width=150).print(draw(state))
    lines = [" ".join(line.split()) for line in drawn.getvalue().splitlines() if line.strip()]
    assert lines[:4] == [
        "NODE STATE PODS",
        "n1 Ready 1 Running",
        "n2 NotReady,SchedulingDisabled 1 Terminating",
        "(none yet) 1 Pending",
    ]
    assert lines[5].startswith("default/stuck n2 its node n2 does not respond")
    assert lines[7].startswith("default/old ")
    assert lines[7].endswith("collected by pod GC")
    assert lines[-1] == "pods: 1 Pending, 1 Running, 1 Terminating; 1 gone"


@pytest.mark.parametrize("width", [40, 80, 140])
def test_names_are_shown_whole_and_explanations_give_way(
    state: ClusterState, clock: ManualClock, width: int
) -> None:
    name = "a-deployment-with-a-long-name-7d9c5b8f6d-abcde"
    state.of_nodes.on_add(node("n1"))
    state.of_pods.on_add(ending(name, clock, "lost"))
    gone = pod("old-" + name, "n1")
    state.of_pods.on_add(gone)
    state.of_pods.on_delete(gone)
    drawn = io.StringIO()
    Console(file=drawn, width=width).print(draw(state))
    lines = drawn.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    if width > 40:
        assert any(f"default/{name}  " in line for line in lines)
        assert any(f"default/old-{name}  " in line for line in lines)
    assert any(line.endswith("deleted") for line in lines)
    assert any("its node lost is gone" in line for line in lines)


def test_a_view_of_many_nodes_shows_those_that_are_not_ready(state: ClusterState) -> None:
    for number in range(100):
        state.of_nodes.on_add(node(f"node-{number}", "False" if number == 77 else "True"))
    drawn = io.StringIO()
    Console(file=drawn, width=100).print(draw(state))
    assert "node-77" in drawn.getvalue()
    assert "… of 100" in drawn.getvalue()
    assert len(drawn.getvalue().splitlines()) < 20


def test_lines_tell_changes_of_nodes_and_numbers_that_have_settled(state: ClusterState) -> None:
    said: list[str] = []
    state.of_nodes.on_add(node("n1"))
    lines = ChangeLines(state, said.append)
    state.of_pods.on_add(pod("a", "n1"))
    lines.look()
    assert said == []
    lines.look()
    assert said == ["pods: 1 Running"]
    state.of_nodes.on_update(
        node("n1"), node("n1", "Unknown", message="Kubelet stopped posting node status.")
    )
    lines.look()
    assert said[1:] == ["node n1 is NotReady: Kubelet stopped posting node status."]
    state.of_nodes.on_delete(node("n1"))
    lines.look()
    assert said[2:] == ["node n1 is gone"]


def test_numbers_that_never_settle_are_told_now_and_then(state: ClusterState) -> None:
    said: list[str] = []
    lines = ChangeLines(state, said.append)
    for number in range(10):
        state.of_pods.on_add(pod(f"a{number}"))
        lines.look()
    assert said == ["pods: 5 Running", "pods: 10 Running"]


def test_a_server_that_is_away_and_comes_back_is_told_once_each(state: ClusterState) -> None:
    said: list[str] = []
    lines = ChangeLines(state, said.append)
    for state.is_live in (False, False, True):
        lines.look()
    assert said[0] == "the API server does not answer"
    assert said[-1] == "the API server answers again"
    assert len([line for line in said if "API server" in line]) == 2


def test_names_are_in_the_order_of_their_numbers() -> None:
    names = ["node-10", "node-2", "more", "node-1"]
    assert sorted(names, key=in_order) == ["more", "node-1", "node-2", "node-10"]


def test_the_welcome_has_lines_that_can_be_copied() -> None:
    kubeconfig, join_file = Path("/a b/admin.kubeconfig"), Path("/a b/join")
    cluster = StartedCluster(
        "https://127.0.0.1:6443", kubeconfig, join_file, 1, frozenset(), is_restart=False
    )
    text = Welcome(cluster).text(1.25)
    assert "export KUBECONFIG='/a b/admin.kubeconfig'" in text
    assert "1 node is ready" in text
    assert text.count("\n  kubectl ") == 3
    assert "browser" not in text
    shown = Welcome(replace(cluster, page="http://127.0.0.1:8480/?token=t")).text(1.25)
    assert "\nIn a browser: http://127.0.0.1:8480/?token=t\n" in shown


def test_no_pods_are_said_to_be_none() -> None:
    assert summary_of(ClusterState(ManualClock()).states, 0) == "pods: none"
