"""What `podlife up` prints of its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.cli.commands.up.lines import ChangeLines, Welcome, in_order, summary_of
from podlife.clock import ManualClock
from podlife.localcluster.cluster_state import ClusterState
from podlife.localcluster.session import StartedCluster
from tests.unit.localcluster.test_cluster_state import node, pod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def state(clock: ManualClock) -> ClusterState:
    return ClusterState(clock)


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


def test_no_pods_are_said_to_be_none() -> None:
    assert summary_of(ClusterState(ManualClock()).states, 0) == "pods: none"
