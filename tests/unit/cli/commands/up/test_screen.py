"""The live view of `podlife up`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from podlife.cli.commands.up.screen import draw
from podlife.clock import ManualClock
from podlife.localcluster.cluster_state import ClusterState
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
    assert lines[5].startswith("default/stuck n2 its node n2 does not answer")
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
