"""NL-05, NL-06, NL-60 to NL-62: NoSchedule taints by conditions; TE-01 to TE-04: how long a pod bears taints."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from podlife.client import NODES
from podlife.nodehealth.taints import (
    condition_taints,
    evicting_taints,
    has_taint,
    label_changes,
    seconds_to_bear,
    shortest,
)
from podlife.nodehealth.views import MonitoredNodeSpec, NodeTaint, Toleration
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import Asked, world
from tests.conformance.nodehealth.objects import node, taint, toleration
from tests.kit.embedded import refusal

PREFIX = "node.kubernetes.io/"


@pytest.mark.parametrize(
    ("condition", "status", "key"),
    [
        pytest.param("Ready", "False", "not-ready", id="NL-60 not ready"),
        pytest.param("Ready", "Unknown", "unreachable", id="NL-60 silent"),
        pytest.param("NetworkUnavailable", "True", "network-unavailable", id="NL-60 network"),
        pytest.param("MemoryPressure", "True", "memory-pressure", id="NL-60 memory"),
        pytest.param("DiskPressure", "True", "disk-pressure", id="NL-60 disk"),
        pytest.param("PIDPressure", "True", "pid-pressure", id="NL-60 processes"),
    ],
)
def test_a_condition_has_its_taint(condition: str, status: str, key: str) -> None:
    """NL-05 has the keys."""
    conditions: dict[str, Any] = {condition: status}
    seen = node(**conditions)
    assert condition_taints(seen) == ([(PREFIX + key, "NoSchedule")], [])
    seen.spec = MonitoredNodeSpec(taints=(NodeTaint(PREFIX + key, "", "NoSchedule"),))
    assert condition_taints(seen) == ([], [])
    well = node(heartbeat=0)
    well.spec = seen.spec
    assert condition_taints(well) == ([], [(PREFIX + key, "NoSchedule")])


def test_a_node_that_takes_no_pods_has_its_taint() -> None:
    """NL-61."""
    seen = node(heartbeat=0)
    seen.spec = MonitoredNodeSpec(unschedulable=True)
    assert condition_taints(seen) == ([(f"{PREFIX}unschedulable", "NoSchedule")], [])


def test_taints_are_the_same_by_key_and_effect() -> None:
    """NL-06."""
    present = (NodeTaint("k", "v", "NoExecute", "2030-01-01T00:00:00Z"),)
    assert has_taint(present, ("k", "NoExecute"))
    assert not has_taint(present, ("k", "NoSchedule"))


def test_other_taints_are_left_alone() -> None:
    """NL-62: other keys, and other effects of these keys."""
    seen = node(heartbeat=0)
    kept = (
        NodeTaint("mine", "", "NoSchedule"),
        NodeTaint(f"{PREFIX}not-ready", "", "NoExecute"),
        NodeTaint(f"{PREFIX}disk-pressure", "", "PreferNoSchedule"),
    )
    seen.spec = MonitoredNodeSpec(taints=kept)
    assert condition_taints(seen) == ([], [])


@virtual_time
async def test_they_come_and_go_at_once_and_a_failure_comes_again() -> None:
    """NL-62: not bound to any rate; otherwise than upstream what fails is tried again."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        for number in range(20):
            await w.add_node(f"n{number}")
        await w.taint("n0", "mine", effect="NoSchedule")
        await asyncio.sleep(5)
        for number in range(20):
            await w.post(f"n{number}", MemoryPressure="True")
        await asyncio.sleep(0.5)
        assert await w.taints("n0") == ["mine:NoSchedule", "memory-pressure:NoSchedule"]
        assert [await w.taints(f"n{number}") for number in range(1, 20)] == [
            ["memory-pressure:NoSchedule"]
        ] * 19

        async def refuse(request: Request, to_server: Handler) -> Response:
            if request.method == "PATCH" and request.path.endswith("/nodes/n0"):
                asked.answer = None
                return refusal(500)
            return await to_server(request)

        asked.answer = refuse
        await w.post("n0")
        await asyncio.sleep(0.5)
        assert await w.taints("n0") == ["mine:NoSchedule"]
        await w.client.patch(NODES, "n0", {"spec": {"unschedulable": True}})
        await asyncio.sleep(0.1)
        assert await w.taints("n0") == ["mine:NoSchedule", "unschedulable:NoSchedule"]


@virtual_time
async def test_a_heartbeat_asks_nothing_of_the_server() -> None:
    """NL-62: nodes that are well cost their heartbeats alone."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_node("n1")
        await asyncio.sleep(20)
        before = len(asked.requests)
        for _ in range(5):
            await w.post("n1")
            await asyncio.sleep(5)
        assert len(asked.requests) == before


def test_the_older_labels_follow_the_newer_ones() -> None:
    newer = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    older = {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64"}
    assert label_changes(newer) == older
    assert label_changes({**newer, **older}) == {}
    assert label_changes({**newer, **older, "beta.kubernetes.io/os": "plan9"}) == {
        "beta.kubernetes.io/os": "linux"
    }
    assert label_changes({"beta.kubernetes.io/os": "plan9"}) == {}


def test_only_taints_that_evict_matter() -> None:
    """TE-01."""
    evicts = taint("a")
    others = [taint("a", effect=effect) for effect in ("NoSchedule", "PreferNoSchedule", "")]
    assert evicting_taints([*others, evicts]) == (evicts,)


def test_all_must_be_borne_and_of_several_tolerations_the_first_counts() -> None:
    """TE-02: also where a later one is closer to the taint."""
    wide, close = toleration("", 700), toleration("a", 10)
    assert seconds_to_bear([taint("a")], [wide, close]) == 700
    assert seconds_to_bear([taint("a")], [close, wide]) == 10
    assert seconds_to_bear([taint("a"), taint("b")], [close]) is None
    assert seconds_to_bear([taint("a"), taint("b")], [close, wide]) == 10


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        pytest.param([], 0, id="TE-03a none"),
        pytest.param([None], math.inf, id="TE-03b without seconds"),
        pytest.param([1, 2], 1, id="TE-03c two"),
        pytest.param([1, None], 1, id="TE-03d one without"),
        pytest.param([None, 1], 1, id="TE-03e the first without"),
        pytest.param([5, 0], 0, id="TE-03 zero"),
        pytest.param([5, -7], 0, id="TE-03 less than zero"),
    ],
)
def test_the_shortest_counts(seconds: list[int | None], wait: float) -> None:
    assert shortest([toleration("a", each) for each in seconds]) == wait


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (toleration("a"), True),
        (toleration("b"), False),
        (toleration(""), True),
        (toleration("a", effect="NoExecute"), True),
        (toleration("a", effect="NoSchedule"), False),
        (toleration("a", operator="Equal", value="v"), True),
        (toleration("a", operator="Equal", value="w"), False),
        (toleration("a", operator="", value="v"), True),
        (toleration("a", operator="", value=""), False),
        (toleration("a", operator="Lt", value="w"), False),
        (toleration("a", operator="Gt", value="0"), False),
    ],
)
def test_which_toleration_fits(given: Toleration, fits: bool) -> None:
    """TE-04: no effect is all effects, no key all keys, no operator Equal; comparing is an alpha feature, off."""
    assert seconds_to_bear([taint("a", "v")], [given]) == (math.inf if fits else None)
