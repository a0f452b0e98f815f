"""The scheduler on a real API server: pods are bound, refused and told why."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.client import EVENTS, NAMESPACES, NODES, PODS, Client, DeleteOptions
from podlife.controller import ControlPlane
from podlife.scheduler import Scheduler
from tests.kit.real_parts import Server
from tests.unit.scheduler.objects import node_object, pod_object
from tests.workloads.runs import at_work, connect

Object = dict[str, Any]
NAMES = ("sched-a", "sched-b", "sched-c")
HERE = {"sched": "yes"}


@pytest.fixture
async def client(kube: Server) -> AsyncIterator[Client]:
    async with connect(kube.kubeconfig) as client:
        yield client


@asynccontextmanager
async def cluster(client: Client, namespace: str, **allocatable: str) -> AsyncIterator[None]:
    """Three nodes, and a scheduler for those who name it."""
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    for name in NAMES:
        made = node_object(name, labels=HERE, allocatable=allocatable)
        await client.create(NODES, {"metadata": made["metadata"], "spec": made["spec"]})
        await client.patch(NODES, name, {"status": made["status"]}, subresource="status")
        # What the server adds to a new node, and who watches over nodes would take off.
        await client.patch(NODES, name, {"spec": {"taints": None}})
    plane = ControlPlane(client)
    plane.add(Scheduler(plane, scheduler_name=namespace))
    try:
        async with at_work(plane.run):
            yield
    finally:
        for name in NAMES:
            await client.delete(NODES, name)
        await client.delete(NAMESPACES, namespace)


async def add(client: Client, namespace: str, name: str, **changes: Any) -> None:
    made = pod_object(name, schedulerName=namespace, nodeSelector=HERE, **changes)
    made["metadata"] |= {"namespace": namespace}
    del made["metadata"]["uid"]
    await client.create(PODS, made)


async def until(
    client: Client, namespace: str, holds: Callable[[dict[str, Object]], bool]
) -> dict[str, Object]:
    async with asyncio.timeout(120):
        while True:
            page = await client.list(PODS, namespace)
            found = {each["metadata"]["name"]: each for each in page.items}
            if holds(found):
                return found
            await asyncio.sleep(0.05)


def where(pods: dict[str, Object]) -> Counter[str]:
    return Counter(each["spec"].get("nodeName", "") for each in pods.values())


def told(pod: Object) -> Object:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


async def test_pods_are_spread_and_told_of(client: Client) -> None:
    async with cluster(client, "sched-spread"):
        for number in range(6):
            await add(client, "sched-spread", f"p{number}", owner="web")
        pods = await until(client, "sched-spread", lambda pods: not where(pods)[""])
        assert where(pods) == {"sched-a": 2, "sched-b": 2, "sched-c": 2}
        assert {told(each)["status"] for each in pods.values()} == {"True"}
        events: list[Object] = []
        async with asyncio.timeout(120):
            while len(events) < 6:
                events = (await client.list(EVENTS, "sched-spread")).items
                await asyncio.sleep(0.05)
    assert {each["reason"] for each in events} == {"Scheduled"}


async def test_a_pod_without_room_says_why_and_has_the_next_place(client: Client) -> None:
    async with cluster(client, "sched-full", cpu="1"):
        for number in range(4):
            await add(client, "sched-full", f"p{number}", cpu="1")
        pods = await until(
            client,
            "sched-full",
            # The others have a place by then, but perhaps not yet on the server.
            lambda pods: (
                where(pods)[""] == 1 and any(told(each).get("status") == "False" for each in pods.values())
            ),
        )
        assert where(pods) == {"sched-a": 1, "sched-b": 1, "sched-c": 1, "": 1}
        [last] = [name for name, pod in pods.items() if not pod["spec"].get("nodeName")]
        assert told(pods[last])["reason"] == "Unschedulable"
        message = told(pods[last])["message"]
        # Other tests may have nodes of their own on this server.
        assert "3 Insufficient cpu" in message
        assert message.startswith("0/")
        first = next(name for name in pods if name != last)
        await client.delete(PODS, first, "sched-full", options=DeleteOptions(grace_period_seconds=0))
        await until(client, "sched-full", lambda pods: where(pods)[""] == 0)


async def test_a_gated_pod_waits_and_is_shown_as_such(client: Client) -> None:
    async with cluster(client, "sched-gated"):
        await add(client, "sched-gated", "p", schedulingGates=[{"name": "example.com/wait"}])
        pods = await until(client, "sched-gated", lambda pods: bool(told(pods["p"])))
        assert told(pods["p"])["reason"] == "SchedulingGated"
        await client.patch(PODS, "p", {"spec": {"schedulingGates": []}}, "sched-gated")
        await until(client, "sched-gated", lambda pods: where(pods)[""] == 0)
