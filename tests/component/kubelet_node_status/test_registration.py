"""A node joins its cluster: one that is new, one that was there, one that somebody takes away."""

from __future__ import annotations

import asyncio

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.client import LEASES, NODES, DeleteOptions
from podlife.kubelet.node_status.node_object import NodeRecord, follow_node
from podlife.testing import virtual_time
from tests.component.kubelet_node_status.kit import world

TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@virtual_time
async def test_a_new_node_is_created_ready_with_labels_taints_and_what_it_has() -> None:
    async with world() as here, here.running(labels={"pool": "a"}, taints=(TAINT,), provider_id="p://1"):
        node = await here.node()
        assert node["metadata"]["labels"] == {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
            "pool": "a",
        }
        assert node["spec"] == {"taints": [TAINT], "providerID": "p://1"}
        status = node["status"]
        assert status["capacity"] == {
            "cpu": "4",
            "ephemeral-storage": "100Gi",
            "hugepages-2Mi": "0",
            "memory": "16Gi",
            "pods": "110",
        }
        assert status["allocatable"]["memory"] == "16284Mi"
        assert status["addresses"] == [
            {"type": "InternalIP", "address": "192.0.2.1"},
            {"type": "Hostname", "address": "192.0.2.1"},
        ]
        assert status["nodeInfo"]["containerRuntimeVersion"] == "stub://1.0"
        assert (await here.condition("Ready"))["reason"] == "KubeletReady"


@virtual_time
async def test_a_node_that_was_there_keeps_its_taints_labels_and_provider() -> None:
    async with world() as here:
        old = {
            "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "old", "mine": "1"}},
            "spec": {"providerID": "cloud://7", "taints": [TAINT], "unschedulable": True},
            "status": {"capacity": {"example.com/gpu": "2", "hugepages-1Gi": "4Gi", "cpu": "1"}},
        }
        uid = (await here.client.create(NODES, old))["metadata"]["uid"]
        async with here.running(labels={"pool": "a"}, taints=({"key": "k", "effect": "NoExecute"},)):
            node = await here.node()
            assert node["metadata"]["uid"] == uid
            assert node["spec"] == {"providerID": "cloud://7", "taints": [TAINT], "unschedulable": True}
            labels = node["metadata"]["labels"]
            assert (labels["kubernetes.io/hostname"], labels["mine"], "pool" in labels) == ("n1", "1", False)
            capacity = node["status"]["capacity"]
            assert (capacity["example.com/gpu"], capacity["cpu"]) == ("2", "4")
            assert "hugepages-1Gi" not in capacity
            assert (await here.condition("Ready"))["status"] == "True"


@virtual_time
async def test_the_next_agent_says_at_once_that_the_node_is_there() -> None:
    async with world() as here:
        async with here.running():
            before = await here.condition("Ready")
        await asyncio.sleep(60)
        async with here.running():
            after = await here.condition("Ready")
        assert after["lastHeartbeatTime"] > before["lastHeartbeatTime"]
        assert after["lastTransitionTime"] == before["lastTransitionTime"]


@virtual_time
async def test_a_node_that_went_while_nobody_watched_is_not_believed_in() -> None:
    async with world() as here:
        record = NodeRecord()
        record.put(await here.client.create(NODES, {"metadata": {"name": "n1"}}))
        await here.client.delete(NODES, "n1", options=DeleteOptions(uid=record.uid))
        failures: list[BaseException] = []
        task = spawn(follow_node(here.client, "n1", record), name="follow", on_failure=failures.append)
        await asyncio.sleep(1)
        assert record.node is None
        await here.client.create(NODES, {"metadata": {"name": "n1"}})
        await asyncio.sleep(1)
        assert record.uid
        await cancel_and_wait(task)
        assert not failures


@virtual_time
async def test_a_server_that_refuses_at_first_gets_the_node_later() -> None:
    async with world() as here:
        here.weather = 500
        async with here.running() as reporter:
            assert not reporter.registered.is_set()
            assert reporter.node()["status"]["capacity"]["cpu"] == "4"
            here.weather = None
            await asyncio.sleep(10)
            assert reporter.registered.is_set()
            assert await here.has_node()


@virtual_time
async def test_a_node_that_may_not_create_itself_takes_the_one_that_was_made_for_it() -> None:
    async with world() as here:
        here.forbidden.add(("POST", "/nodes"))
        async with here.running() as reporter:
            assert not reporter.registered.is_set()
            await here.client.create(NODES, {"metadata": {"name": "n1"}})
            await asyncio.sleep(10)
            assert reporter.registered.is_set()
            assert (await here.condition("Ready"))["status"] == "True"


@virtual_time
async def test_a_node_that_may_neither_create_nor_see_itself_says_which_right_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as here:
        here.forbidden |= {("POST", "/nodes"), ("GET", "/nodes/n1")}
        await here.client.create(NODES, {"metadata": {"name": "n1"}})
        async with here.running() as reporter:
            await asyncio.sleep(60)
            assert not reporter.registered.is_set()
        said = [each.message for each in caplog.records if "registered" in each.message]
        assert said == ["node n1 could not be registered: no: 403"]


@virtual_time
async def test_another_node_of_the_name_is_noticed_with_the_next_status_where_nobody_watches() -> None:
    async with world() as here, here.running(watches=False) as reporter:
        await here.delete_node()
        other = await here.client.create(NODES, {"metadata": {"name": "n1", "labels": {"new": "1"}}})
        here.problems.append("something")
        await asyncio.sleep(11)
        assert reporter.uid == other["metadata"]["uid"]
        assert (await here.condition("Ready"))["message"] == "something"
        assert reporter.node()["metadata"]["labels"]["new"] == "1"


@virtual_time
async def test_the_node_may_be_handed_in_by_whoever_watches_for_many() -> None:
    async with world() as here, here.running(watches=False) as reporter:
        old = reporter.node()
        await here.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
        assert "unschedulable" not in reporter.node()["spec"]
        reporter.put(await here.node())
        assert reporter.node()["spec"]["unschedulable"] is True
        # One that comes late changes nothing.
        reporter.put(old)
        assert reporter.node()["spec"]["unschedulable"] is True
        reporter.remove("another")
        assert reporter.uid
        reporter.remove(reporter.uid)
        assert reporter.uid == ""


@virtual_time
async def test_what_others_change_is_known_to_whoever_asks_for_the_node() -> None:
    async with world() as here, here.running() as reporter:
        assert "taints" not in reporter.node()["spec"]
        await here.client.patch(NODES, "n1", {"spec": {"taints": [TAINT], "unschedulable": True}})
        await asyncio.sleep(0.1)
        assert reporter.node()["spec"]["taints"] == [TAINT]
        await asyncio.sleep(11)
        assert here.events.reasons[-1] == "NodeNotSchedulable"


@virtual_time
async def test_a_node_that_was_deleted_stays_away_as_a_kubelets_does() -> None:
    async with world() as here, here.running() as reporter:
        await here.delete_node()
        lease = await here.lease()
        # What the collector does with what the node has owned.
        await here.client.delete(
            LEASES, "n1", "kube-node-lease", options=DeleteOptions(uid=lease["metadata"]["uid"])
        )
        await asyncio.sleep(11)
        here.requests.clear()
        await asyncio.sleep(120)
        assert not await here.has_node()
        assert {method for method, _ in here.requests} == {"GET"}
        assert reporter.uid == ""
        assert reporter.node()["metadata"]["name"] == "n1"


@virtual_time
async def test_a_node_that_somebody_made_again_is_told_of_and_owns_the_lease() -> None:
    async with world() as here, here.running():
        await here.delete_node()
        await asyncio.sleep(15)
        other = await here.client.create(NODES, {"metadata": {"name": "n1"}})
        await asyncio.sleep(25)
        assert (await here.condition("Ready"))["status"] == "True"
        assert (await here.lease())["metadata"]["ownerReferences"][0]["uid"] == other["metadata"]["uid"]


@virtual_time
async def test_a_node_may_be_told_to_come_back_by_itself() -> None:
    async with world() as here, here.running(register_again=True, watches=False):
        uid = await here.delete_node()
        # Nobody watches: it is noticed with the next status.
        await asyncio.sleep(500)
        node = await here.node()
        assert node["metadata"]["uid"] != uid
        await asyncio.sleep(11)
        assert (await here.lease())["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


@virtual_time
async def test_a_machine_that_was_started_again_is_told_of_once() -> None:
    async with world() as here:
        await here.client.create(
            NODES, {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"bootID": "boot-0"}}}
        )
        async with here.running():
            await asyncio.sleep(60)
        assert here.events.reasons.count("Rebooted") == 1
        assert (await here.node())["status"]["nodeInfo"]["bootID"] == "boot-1"
