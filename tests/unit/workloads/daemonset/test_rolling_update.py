"""Which pods an update replaces next."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.errors import TerminalError
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision
from podlife.workloads.daemonset.rolling_update import (
    Replacement,
    RolloutLimits,
    allows_surge,
    limits_of,
    replace_next,
)
from podlife.workloads.daemonset.views import DaemonSet, DaemonSetUpdateStrategy
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.daemonset.pods import NEW, NOW, OLD, daemon_set, names, pod

REVISION = DaemonRevision(NEW, generation="2", min_ready_seconds=10)


def replace(
    limits: RolloutLimits,
    *on_nodes: list[WorkloadPod],
    fits: list[NodeFit] | None = None,
    nodes: int | None = None,
) -> tuple[list[str], list[str]]:
    """The pods that go and the nodes that get one; the pods are given node by node."""
    pods = {f"n{index}": found for index, found in enumerate(on_nodes) if found}
    count = len(on_nodes) if nodes is None else nodes
    every = fits or [NodeFit.SHOULD_RUN] * count
    found: Replacement = replace_next(
        pods, {f"n{index}": fit for index, fit in enumerate(every)}, REVISION, limits, NOW
    )
    return names(found.delete), found.create_on


def old(name: str, *, serves: bool = True) -> list[WorkloadPod]:
    return [pod(name, revision=OLD, ready_for=60 if serves else None)]


def new(name: str, *, ready_for: float | None = 60) -> list[WorkloadPod]:
    return [pod(name, ready_for=ready_for)]


def test_as_many_old_pods_go_as_may_be_unavailable() -> None:
    assert replace(RolloutLimits(2, 0), old("a"), old("b"), old("c")) == (["a", "b"], [])


def test_whatever_does_not_serve_counts_against_what_may_be_unavailable() -> None:
    limits = RolloutLimits(2, 0)
    assert replace(limits, new("a", ready_for=None), old("b"), old("c")) == (["b"], [])
    assert replace(limits, new("a", ready_for=9), new("b", ready_for=1), old("c")) == ([], [])
    # A node that waits for its pod, one whose pod is going, and one with too many.
    assert replace(limits, [], old("b"), old("c")) == (["b"], [])
    assert replace(limits, [pod("a", going=True)], old("b"), old("c")) == (["b"], [])
    assert replace(limits, old("a") + old("a2"), old("b"), old("c")) == (["b"], [])
    assert replace(limits, old("a") + new("a2"), old("b"), old("c")) == (["b"], [])


def test_old_pods_that_do_not_serve_go_whatever_the_limit() -> None:
    pods = [old("a", serves=False), old("b", serves=False), old("c", serves=False), old("d")]
    assert replace(RolloutLimits(1, 0), *pods) == (["a", "b", "c"], [])


def test_pods_that_are_up_to_date_stay() -> None:
    assert replace(RolloutLimits(5, 0), new("a"), [pod("b", revision="", generation="2")]) == ([], [])
    assert replace(RolloutLimits(0, 5), new("a"), new("b")) == ([], [])


def test_surge_makes_new_pods_beside_old_ones_up_to_its_limit() -> None:
    assert replace(RolloutLimits(0, 2), old("a"), old("b"), old("c")) == ([], ["n0", "n1"])
    # One is on its way, and one node has too many.
    assert replace(RolloutLimits(0, 2), old("a") + new("a2", ready_for=None), old("b"), old("c")) == (
        [],
        ["n1"],
    )
    assert replace(RolloutLimits(0, 2), old("a") + old("a2"), old("b"), old("c")) == ([], ["n1"])


def test_surge_replaces_what_does_not_serve_whatever_the_limit() -> None:
    pods = [old("a", serves=False), old("b", serves=False), old("c")]
    assert replace(RolloutLimits(0, 1), *pods) == ([], ["n0", "n1", "n2"])


def test_surge_takes_the_old_pod_once_the_new_one_serves() -> None:
    assert replace(RolloutLimits(0, 1), old("a") + new("a2"), old("b")) == (["a"], ["n1"])
    assert replace(RolloutLimits(0, 1), old("a") + new("a2", ready_for=9), old("b")) == ([], [])


def test_surge_takes_a_pod_that_serves_where_none_should_be_only_when_enough_serve_elsewhere() -> None:
    fits = [NodeFit.MAY_STAY, NodeFit.SHOULD_RUN]
    assert replace(RolloutLimits(0, 1), old("a"), new("b", ready_for=None), fits=fits) == ([], [])
    assert replace(RolloutLimits(0, 1), old("a"), new("b"), fits=fits) == (["a"], [])
    assert replace(RolloutLimits(0, 1), old("a", serves=False), new("b", ready_for=None), fits=fits) == (
        ["a"],
        [],
    )


def test_surge_leaves_pods_of_nodes_that_are_gone_to_the_collector() -> None:
    assert replace(RolloutLimits(0, 1), old("a"), old("b"), nodes=1) == ([], ["n0"])


@pytest.mark.parametrize(
    ("rolling", "desired", "limits"),
    [
        ({"max_unavailable": 3}, 10, RolloutLimits(3, 0)),
        ({"max_unavailable": "10%"}, 11, RolloutLimits(2, 0)),
        ({"max_unavailable": "1%"}, 3, RolloutLimits(1, 0)),
        ({"max_unavailable": "100%"}, 7, RolloutLimits(7, 0)),
        ({"max_unavailable": 0, "max_surge": "34%"}, 3, RolloutLimits(0, 2)),
        ({"max_unavailable": 0, "max_surge": 2}, 3, RolloutLimits(0, 2)),
        # Neither would never end; with no node there is nothing to be done anyway.
        ({"max_unavailable": 0, "max_surge": 0}, 3, RolloutLimits(1, 0)),
        ({"max_unavailable": 0, "max_surge": 0}, 0, RolloutLimits(0, 0)),
        ({"max_unavailable": "50%"}, 0, RolloutLimits(0, 0)),
    ],
)
def test_limits_are_numbers_or_percentages_rounded_up(
    rolling: dict[str, Any], desired: int, limits: RolloutLimits
) -> None:
    assert limits_of(daemon_set(**rolling), desired) == limits


def test_two_pods_on_a_node_need_a_surge_of_a_rolling_update() -> None:
    surging = daemon_set(max_unavailable=0, max_surge="10%")
    assert allows_surge(surging)
    assert not allows_surge(daemon_set(max_unavailable=1))
    surging.spec.update_strategy.type = "OnDelete"
    assert not allows_surge(surging)
    assert not allows_surge(daemon_set_without_limits())


def daemon_set_without_limits() -> DaemonSet:
    found = daemon_set()
    found.spec.update_strategy = DaemonSetUpdateStrategy()
    return found


@pytest.mark.parametrize("value", ["ten", "10", "-1%", "%", "\u0663%", "9" * 5000 + "%"])
def test_limit_that_is_none_is_told_in_one_line(value: str) -> None:
    with pytest.raises(TerminalError, match=r"invalid value for MaxSurge: .* is neither a number nor a perc"):
        limits_of(daemon_set(max_surge=value), 3)
