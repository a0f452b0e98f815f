"""Pods of higher priority take the place of others: the scenarios on the embedded server, and its failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.client import EVENTS, PODS
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.scheduler.test_scheduler import add_node, get, scheduling
from tests.kit.embedded import connect, refusal, start
from tests.scheduling.preemption import PRIORITY_CLASSES, SCENARIOS, Play, Scenario
from tests.unit.scheduler.objects import pod_object


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
@virtual_time
async def test_scenario(scenario: Scenario) -> None:
    client = connect(await start())
    async with scheduling(client):
        before, after = await Play(client, scenario).run()
        await asyncio.sleep(5)
    bound = {each.name: f"on {each.node}" for each in scenario.bound}
    assert before == bound | scenario.expected
    assert after == scenario.finally_
    events = (await client.list(EVENTS, f"preempt-{scenario.name}")).items
    told = {each["involvedObject"]["name"] for each in events if each["reason"] == "Preempted"}
    assert told == {name for name, state in scenario.expected.items() if state.startswith("ends")}


@virtual_time
async def test_a_victim_that_cannot_be_deleted_is_tried_again_and_marked_once() -> None:
    refused = 0

    async def disturb(request: Request, handler: Handler) -> Response:
        nonlocal refused
        if request.method == "DELETE" and refused < 3:
            refused += 1
            return refusal(403, "Forbidden")
        return await handler(request)

    client = connect(await start(), disturb)
    await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
    await add_node(client, "a", allocatable={"cpu": "1"})
    async with scheduling(client):
        classes: dict[str, Any] = {"low": {}, "high": {"priorityClassName": "high"}}
        for name, priority_class in classes.items():
            made = pod_object(name, cpu="1", **priority_class)
            del made["metadata"]["uid"]
            await client.create(PODS, made)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        low = await get(client, "low")
        assert (refused, bool(low["metadata"].get("deletionTimestamp"))) == (3, True)
        assert [each["type"] for each in low["status"]["conditions"]].count("DisruptionTarget") == 1
        assert (await get(client, "high"))["status"]["nominatedNodeName"] == "a"
