"""NL-01 to NL-33: when a node counts as silent, and what is written onto it then."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import format_time
from podlife.client import NODES
from podlife.nodehealth import NodeHealthSettings
from podlife.nodehealth.node_health import expired_conditions
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import Asked, condition, now, ready_status, world
from tests.conformance.nodehealth.objects import EPOCH, at, lease, look, node
from tests.kit import objects
from tests.kit.embedded import refusal

HOUR = 3600.0
FOUR = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"]


def test_defaults() -> None:
    """NL-01 and NL-02: the times and rates, but for the grace, which is the seeds' 40 s instead of 50 s."""
    assert NodeHealthSettings() == NodeHealthSettings(
        monitor_period_seconds=5.0,
        monitor_grace_seconds=40.0,
        startup_grace_seconds=60.0,
        eviction_rate=0.1,
        secondary_eviction_rate=0.01,
        large_zone_threshold=50,
        unhealthy_zone_threshold=0.55,
    )


@virtual_time
async def test_a_pass_comes_a_period_after_the_last_one_ended() -> None:
    """NL-01: a slow server makes passes rarer, not more."""
    asked = Asked()

    async def slowly(request: Request, to_server: Handler) -> Response:
        if request.method == "GET" and "/leases/" in request.path:
            await asyncio.sleep(2.0)
        return await to_server(request)

    asked.answer = slowly
    async with world() as w, w.at_work(NodeHealthSettings(monitor_grace_seconds=10), way=asked):
        await w.add_nodes("n2", silent="n1")
        await asyncio.sleep(60)
        [asked_at] = asked.of("GET", "/leases/n1")
        silent_at = w.history.first("Node", "n1", lambda each: ready_status(each) == "Unknown")
        assert silent_at is not None
        assert silent_at - asked_at == pytest.approx(2.0)


@virtual_time
async def test_a_write_that_fails_is_tried_five_times_on_what_the_server_has() -> None:
    """NL-03: then nothing is done about the node in this pass, and the next one does it."""
    asked = Asked()
    refused = 0

    async def refuse(request: Request, to_server: Handler) -> Response:
        nonlocal refused
        if request.method == "PATCH" and request.path.endswith("/nodes/n1/status") and refused < 6:
            refused += 1
            return refusal(500)
        return await to_server(request)

    asked.answer = refuse
    async with world() as w, w.at_work(way=asked) as controllers:
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        # First seen by the pass at 5 s, and silent for longer than 40 s at 50 s.
        await asyncio.sleep(52)
        tries = asked.of("PATCH", "/nodes/n1/status")
        assert len(tries) == 5
        assert [round(later - one, 2) for one, later in itertools.pairwise(tries)] == [0.02] * 4
        assert len(asked.of("GET", "/nodes/n1")) >= 5, "read again each time"
        assert (await w.taints("n1"), controllers.lifecycle.tainting.queues[""].is_waiting("n1")) == (
            [],
            False,
        )
        assert condition(await w.pod("web") or {}, "Ready")["status"] == "True"
        await asyncio.sleep(5)
        assert ready_status(await w.node("n1")) == "Unknown"
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


@virtual_time
async def test_eight_nodes_are_written_at_once() -> None:
    """NL-04: and no more, however many fall silent together."""
    asked, most, under_way = Asked(), 0, 0

    async def count(request: Request, to_server: Handler) -> Response:
        nonlocal most, under_way
        if request.method != "PATCH" or not request.path.endswith("/status"):
            return await to_server(request)
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.1)
        under_way -= 1
        return await to_server(request)

    async with world() as w, w.at_work(way=asked) as controllers:
        for number in range(30):
            await w.add_node(f"n{number}", beats=False)
        await w.add_node("up")
        asked.answer = count
        await asyncio.sleep(60)
        assert most == 8
        assert controllers.lifecycle.controller._workers == 8
        assert controllers.lifecycle.pod_controller._workers == 4
        silent = [ready_status(each) for each in (await w.client.list(NODES)).items]
        assert silent.count("Unknown") == 30


def test_what_is_heard_is_that_something_changed_not_what_it_says() -> None:
    """NL-10: a heartbeat of another time, also an earlier one; a condition that comes or goes; a lease renewed."""
    known = look(node(heartbeat=0), 0).health
    assert known.last_report_at == 0
    assert look(node(heartbeat=0), 7, known).health.last_report_at == 0
    assert look(node(heartbeat=5), 7, known).health.last_report_at == 7
    assert look(node(heartbeat=-HOUR), 7, known).health.last_report_at == 7
    assert look(node(), 7, known).health.last_report_at == 7
    assert look(node(heartbeat=0), 7, look(node(), 0).health).health.last_report_at == 7
    leased = look(node(heartbeat=0), 7, known, lease(0)).health
    assert leased.last_report_at == 7, "no lease was known"
    assert look(node(heartbeat=0), 9, leased, lease(0)).health.last_report_at == 7
    assert look(node(heartbeat=0), 9, leased, lease(-5)).health.last_report_at == 7
    assert look(node(heartbeat=0), 9, leased, lease(1)).health.last_report_at == 9


def test_a_node_that_never_said_anything_has_the_startup_grace_from_its_creation() -> None:
    """NL-11."""
    assert look(node(created=10), 12).health.last_report_at == 10
    assert not look(node(created=10), 70).must_write
    assert look(node(created=10), 70.1).must_write


def test_the_end_of_the_grace_is_still_inside() -> None:
    """NL-12."""
    known = look(node(heartbeat=0), 0).health
    assert look(node(heartbeat=0), 50, known).current == "True"
    assert look(node(heartbeat=0), 50.001, known).current == "Unknown"


def raw(*conditions: tuple[str, str]) -> dict[str, Any]:
    times = {"lastHeartbeatTime": "2029-12-31T23:00:00Z", "lastTransitionTime": "2029-12-31T22:00:00Z"}
    listed = [{"type": type_, "status": status, "reason": "R", **times} for type_, status in conditions]
    return {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}, "status": {"conditions": listed}}


def test_four_conditions_become_unknown_and_the_networks_stays() -> None:
    """NL-13."""
    present = [(type_, "False") for type_ in (*FOUR, "NetworkUnavailable")]
    changed = expired_conditions(raw(*present), EPOCH)
    assert [each["type"] for each in changed] == FOUR
    assert {each["status"] for each in changed} == {"Unknown"}


def test_a_condition_that_is_missing_says_that_it_never_was() -> None:
    """NL-14."""
    assert expired_conditions(raw(), EPOCH)[0] == objects.condition(
        "Ready",
        "Unknown",
        reason="NodeStatusNeverUpdated",
        message="Kubelet never posted node status.",
        lastHeartbeatTime="2020-01-01T00:00:00Z",
        lastTransitionTime=format_time(EPOCH),
    )


def test_a_condition_that_is_there_keeps_its_heartbeat() -> None:
    """NL-15."""
    assert expired_conditions(raw(("Ready", "True")), EPOCH)[0] == objects.condition(
        "Ready",
        "Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        lastHeartbeatTime="2029-12-31T23:00:00Z",
        lastTransitionTime=format_time(EPOCH),
    )


def test_a_condition_that_is_unknown_already_is_left() -> None:
    """NL-16."""
    changed = expired_conditions(raw(("MemoryPressure", "Unknown"), ("Ready", "True")), EPOCH)
    assert [each["type"] for each in changed] == ["Ready", "DiskPressure", "PIDPressure"]


def test_nothing_is_written_unless_the_ready_condition_changes() -> None:
    """NL-17."""
    silent = node(heartbeat=0, status="Unknown", MemoryPressure="False")
    seen = look(silent, HOUR, look(silent, 0).health)
    assert (seen.current, seen.must_write) == ("Unknown", False)


ROWS = [
    # The node, and of its lease the renewals seen at first and an hour later; what it comes to at first and then.
    pytest.param(
        node(created=0), None, None, None, "Unknown", id="NL-21 NL-24 created now, no status, no lease"
    ),
    pytest.param(node(created=0), 0, None, None, "Unknown", id="NL-25 created now, no status, a lease"),
    pytest.param(node(created=-HOUR), 0, HOUR, None, None, id="NL-27 old, no status, a lease renewed"),
    pytest.param(node(created=-HOUR), 0, 0, None, "Unknown", id="NL-28 old, no status, a lease not renewed"),
    pytest.param(node(heartbeat=-HOUR), 0, HOUR, "True", "True", id="NL-29 an old status, a lease renewed"),
    pytest.param(node(heartbeat=-HOUR), -HOUR, -HOUR, "True", "Unknown", id="NL-31 both old"),
]


@pytest.mark.parametrize(("seen", "first", "later", "at_first", "at_last"), ROWS)
def test_rows_of_status_and_lease(
    seen: Any, first: float | None, later: float | None, at_first: str | None, at_last: str | None
) -> None:
    one = look(seen, 0, None, None if first is None else lease(first))
    assert one.current == at_first
    two = look(seen, HOUR, one.health, None if later is None else lease(later))
    assert two.current == at_last


def test_a_status_alone_keeps_a_node_alive() -> None:
    """NL-23 with a fresh status, NL-30 with a lease that is an hour old."""
    known = look(node(heartbeat=0), 0, None, lease(-HOUR)).health
    assert look(node(heartbeat=HOUR), HOUR, known, lease(-HOUR)).current == "True"


@virtual_time
async def test_a_node_that_never_said_anything_gets_all_four_and_its_pods_are_left() -> None:
    """NL-20, in the first pass."""
    async with world() as w:
        await w.client.create(NODES, {"metadata": {"name": "n1"}})
        await w.add_node("n2")
        await w.add_pod("web", "n1")
        await asyncio.sleep(HOUR)
        async with w.at_work():
            await asyncio.sleep(1)
            conditions = (await w.node("n1"))["status"]["conditions"]
            assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
                (type_, "Unknown", "NodeStatusNeverUpdated") for type_ in FOUR
            ]
            await asyncio.sleep(20)
            assert condition(await w.pod("web") or {}, "Ready")["status"] == "True"


@pytest.mark.parametrize("status", ["True", "False", "Unknown", None])
@pytest.mark.parametrize("seconds", [10.0, 100.0])
def test_what_is_remembered_is_what_was_seen(status: str | None, seconds: float) -> None:
    """NL-32; after the grace it is what was written, see below."""
    seen = node() if status is None else node(heartbeat=0, status=status)
    known = look(seen, 0).health
    assert known.ready == seen.ready
    assert look(seen, seconds, known).health.ready == seen.ready


@virtual_time
async def test_what_was_written_is_remembered_and_the_others_are_left() -> None:
    """NL-32 after the grace, and NL-33: the silent one of two becomes Unknown just after its grace."""
    async with world() as w, w.at_work(NodeHealthSettings(monitor_grace_seconds=50)) as controllers:
        await w.add_nodes("fresh", silent="silent")
        await asyncio.sleep(70)
        assert ready_status(await w.node("silent")) == "Unknown"
        assert ready_status(await w.node("fresh")) == "True"
        known = controllers.lifecycle.monitor.healths
        assert {name: each.ready and each.ready.status for name, each in known.items()} == {
            "silent": "Unknown",
            "fresh": "True",
        }
        silent_at = w.history.first("Node", "silent", lambda each: ready_status(each) == "Unknown")
        assert silent_at is not None
        assert 50 < silent_at <= 60
        written = (await w.node("silent"))["status"]["conditions"]
        assert [each["type"] for each in written] == FOUR, "in the order that they were in"
        assert all(each["reason"] == "NodeStatusUnknown" for each in written)
        transition = condition({"status": {"conditions": written}}, "Ready")["lastTransitionTime"]
        assert transition == format_time(at(int(silent_at)).wall + timedelta(0))
        assert now() > silent_at
