"""The node of `docs/own-compute.md`, taken from the page as it stands, on the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from podlife.aio import cancel_and_wait
from podlife.client import NODES, PODS, Client
from podlife.errors import NotFoundError
from podlife.testing import LoopClock, virtual_time
from tests.conformance.runtime.custom_machine import PAGE, own_compute
from tests.kit.embedded import connect, start

Object = dict[str, Any]
MODULE = own_compute(whole=True)
[POD] = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


@asynccontextmanager
async def joined(client: Client, folder: Path, compute: Any) -> AsyncIterator[None]:
    agent = asyncio.get_running_loop().create_task(MODULE.join(client, folder, compute, LoopClock()))
    try:
        yield
        assert not agent.done(), agent
    finally:
        await cancel_and_wait(agent)


async def until(client: Client, condition: Callable[[Object], bool], name: str = "hello") -> Object:
    async with asyncio.timeout(600):
        while not condition(pod := await client.get(PODS, name, "default")):
            await asyncio.sleep(0.1)
    return pod


def is_ready(pod: Object) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def shown(pod: Object) -> Object:
    first: Object = pod["status"]["containerStatuses"][0]
    return first


@virtual_time
async def test_a_pod_lives_on_it_through_a_restart_of_the_agent_and_ends_within_its_grace(
    tmp_path: Path,
) -> None:
    compute = MODULE.Coroutines({"greet": MODULE.greet})
    async with connect(await start()) as client:
        await client.create(PODS, POD, "default")
        async with joined(client, tmp_path, compute):
            before = await until(client, is_ready)
            node = await client.get(NODES, "my-node")
            assert node["status"]["nodeInfo"]["containerRuntimeVersion"] == "coroutines://1"
            assert node["status"]["capacity"]["cpu"] == "8"
        await asyncio.sleep(10)
        async with joined(client, tmp_path, compute):
            await asyncio.sleep(30)
            after = await client.get(PODS, "hello", "default")
            assert (shown(after)["containerID"], shown(after)["restartCount"]) == (
                shown(before)["containerID"],
                0,
            )
            assert is_ready(after)
            began = asyncio.get_running_loop().time()
            await delete(client, "hello")
            assert asyncio.get_running_loop().time() - began < 5
        [log] = tmp_path.rglob("0.log")
        assert "stdout F hello node" in log.read_text()


async def delete(client: Client, name: str) -> None:
    """Returns when it is gone."""
    await client.delete(PODS, name, "default")
    with contextlib.suppress(NotFoundError):
        await until(client, lambda _: False, name)


@virtual_time
async def test_what_ends_is_started_again_by_the_rules_and_what_is_not_there_says_so(tmp_path: Path) -> None:
    async def crash(work: Any, stop: asyncio.Event) -> int:
        await asyncio.sleep(1)
        raise ValueError("too hot")

    compute = MODULE.Coroutines({"greet": crash})
    async with connect(await start()) as client:
        pod = {**POD, "spec": {**POD["spec"], "containers": [{**POD["spec"]["containers"][0], "args": []}]}}
        await client.create(PODS, pod, "default")
        other = {**pod["spec"]["containers"][0], "command": ["nothing"]}
        await client.create(
            PODS,
            {**pod, "metadata": {"name": "other"}, "spec": {**pod["spec"], "containers": [other]}},
            "default",
        )
        async with joined(client, tmp_path, compute):
            crashed = await until(client, lambda each: shown_count(each) >= 3)
            ended = shown(crashed)["lastState"]["terminated"]
            assert (ended["exitCode"], ended["message"]) == (1, "ValueError('too hot')")
            missing = await until(client, lambda each: shown_count(each) >= 1, "other")
            assert "there is no such program" in str(missing["status"]["containerStatuses"])
            await delete(client, "hello")
            await delete(client, "other")


def shown_count(pod: Object) -> int:
    statuses = pod["status"].get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))
