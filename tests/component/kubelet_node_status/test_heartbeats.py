"""What a monitor of nodes sees of one: its lease and its status, also when things go wrong."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from podlife.api.codec import parse_time
from podlife.client import LEASES, NODES, DeleteOptions
from podlife.kubelet.node_status import MachineUsage
from podlife.testing import LoopClock, virtual_time
from tests.component.kubelet_node_status.kit import World, world


async def renewed_at(here: World) -> datetime:
    return parse_time((await here.lease())["spec"]["renewTime"])


@virtual_time
async def test_the_lease_belongs_to_the_node_and_is_never_older_than_its_period() -> None:
    async with world() as here, here.running():
        lease = await here.lease()
        node = await here.node()
        assert lease["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
        ]
        assert lease["spec"]["holderIdentity"] == "n1"
        assert lease["spec"]["leaseDurationSeconds"] == 40
        for _ in range(30):
            await asyncio.sleep(7)
            assert LoopClock().now() - await renewed_at(here) <= timedelta(seconds=10.5)


@virtual_time
async def test_a_renewal_is_one_request_and_an_idle_node_sends_nothing_else() -> None:
    async with world() as here, here.running(watches=False):
        here.requests.clear()
        await asyncio.sleep(101)
        assert {method for method, _ in here.requests} == {"PUT"}
        assert 9 <= len(here.requests) <= 11


@virtual_time
async def test_a_lease_that_somebody_took_away_is_taken_again() -> None:
    async with world() as here, here.running():
        uid = (await here.lease())["metadata"]["uid"]
        await here.client.delete(LEASES, "n1", "kube-node-lease", options=DeleteOptions(uid=uid))
        await asyncio.sleep(11)
        assert (await here.lease())["metadata"]["uid"] != uid


@virtual_time
async def test_a_server_that_stalls_is_noticed_before_the_lease_is_over() -> None:
    async with world() as here, here.running() as reporter:
        here.weather = "stall"
        await asyncio.sleep(25)
        assert reporter.lease.complaint
        here.weather = None
        await asyncio.sleep(20)
        assert not reporter.lease.complaint
        assert LoopClock().now() - await renewed_at(here) <= timedelta(seconds=10.5)


@virtual_time
async def test_a_server_that_fails_is_asked_less_and_less_often() -> None:
    async with world() as here, here.running(watches=False):
        here.weather = 403
        here.requests.clear()
        await asyncio.sleep(100)
        assert 10 < here.sent("PUT", "leases") + here.sent("GET", "leases") < 40


@virtual_time
async def test_a_status_that_does_not_change_is_sent_about_every_five_minutes() -> None:
    async with world() as here, here.running():
        before = await here.condition("Ready")
        here.requests.clear()
        await asyncio.sleep(3600)
        after = await here.condition("Ready")
        assert 10 <= here.sent("PATCH", "nodes") <= 14
        assert after["lastHeartbeatTime"] > before["lastHeartbeatTime"]
        assert after["lastTransitionTime"] == before["lastTransitionTime"]


@virtual_time
async def test_a_runtime_that_is_away_for_a_moment_is_not_told_of() -> None:
    async with world() as here, here.running():
        here.runtime.is_up = False
        await asyncio.sleep(25)
        here.runtime.is_up = True
        await asyncio.sleep(30)
        assert (await here.condition("Ready"))["status"] == "True"
        assert "NodeNotReady" not in here.events.reasons


@virtual_time
async def test_a_node_whose_runtime_is_down_is_not_ready_until_it_is_back() -> None:
    async with world() as here, here.running():
        here.runtime.is_up = False
        await asyncio.sleep(45)
        ready = await here.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
        assert ready["message"] == (
            "[container runtime is down, container runtime not ready: no answer on its socket]"
        )
        here.runtime.is_up = True
        await asyncio.sleep(2)
        assert (await here.condition("Ready"))["status"] == "True"
        assert here.events.reasons[-2:] == ["NodeNotReady", "NodeReady"]


@virtual_time
async def test_a_runtime_that_never_answered_keeps_a_new_node_from_being_ready() -> None:
    async with world() as here:
        here.runtime.is_up = False
        async with here.running():
            ready = await here.condition("Ready")
            assert ready["status"] == "False"
            assert "container runtime status check may not have completed yet" in ready["message"]
            assert (await here.node())["status"]["nodeInfo"]["containerRuntimeVersion"] == "stub://Unknown"


@virtual_time
async def test_a_node_that_a_monitor_gave_up_says_that_it_is_there() -> None:
    """NL-15 is what the monitor writes."""
    async with world() as here, here.running():
        await asyncio.sleep(25)
        gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await here.client.patch(NODES, "n1", {"status": {"conditions": [gone]}}, subresource="status")
        await asyncio.sleep(11)
        ready = await here.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")


@virtual_time
async def test_conditions_of_others_stay_when_the_status_is_told() -> None:
    async with world() as here, here.running():
        node = await here.node()
        foreign = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
        node["status"]["conditions"].insert(0, foreign)
        node["status"]["images"] = [{"names": ["a"], "sizeBytes": 1}]
        await here.client.update(NODES, node, subresource="status")
        here.machine.now_used = MachineUsage(memory_free_bytes=1)
        await asyncio.sleep(11)
        assert (await here.condition("MemoryPressure"))["status"] == "True"
        assert (await here.condition("NetworkUnavailable"))["reason"] == "RouteCreated"
        assert (await here.node())["status"]["images"] == [{"names": ["a"], "sizeBytes": 1}]


@virtual_time
async def test_a_shortage_is_told_at_once_and_its_end_after_a_while() -> None:
    async with world() as here, here.running():
        here.machine.now_used = MachineUsage(storage_free_percent=3.0)
        await asyncio.sleep(11)
        disk = await here.condition("DiskPressure")
        assert (disk["status"], disk["reason"]) == ("True", "KubeletHasDiskPressure")
        here.machine.now_used = MachineUsage(storage_free_percent=50.0)
        await asyncio.sleep(200)
        assert (await here.condition("DiskPressure"))["status"] == "True"
        await asyncio.sleep(130)
        disk = await here.condition("DiskPressure")
        assert (disk["status"], disk["reason"]) == ("False", "KubeletHasNoDiskPressure")
