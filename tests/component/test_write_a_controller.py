"""The controller of `docs/write-a-controller.md`, taken from the page as it stands, on the embedded server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from types import ModuleType
from typing import Any

import pytest
import yaml

from podlife.aio import cancel_and_wait
from podlife.client import CONFIG_MAPS, EVENTS, PODS, Client
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start, stream_of
from tests.kit.real_parts import ROOT

PAGE = (ROOT / "docs" / "write-a-controller.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def block(language: str) -> str:
    """The first one."""
    return blocks(language)[0]


def warm_pools() -> ModuleType:
    module = ModuleType("warm_pools")
    exec(compile(block("python"), "warm_pools.py", "exec", dont_inherit=True), module.__dict__)
    return module


MODULE = warm_pools()


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[Any]:
    plane = ControlPlane(client, clock=LoopClock())
    controller = MODULE.WarmPools(plane)
    task = asyncio.get_running_loop().create_task(plane.run())
    try:
        yield controller
        assert not task.done(), task
    finally:
        await cancel_and_wait(task)


async def make_pool(client: Client, size: int) -> None:
    pool = yaml.safe_load(block("yaml"))
    await client.create(CONFIG_MAPS, {**pool, "data": {**pool["data"], "size": str(size)}}, "default")


async def resize(client: Client, size: int) -> None:
    await client.patch(CONFIG_MAPS, "ci", {"data": {"size": str(size)}}, "default")


async def pods(client: Client) -> list[Any]:
    return [
        pod
        for pod in (await client.list(PODS, "default")).items
        if "deletionTimestamp" not in pod["metadata"]
    ]


def lines(text: str) -> int:
    return len([line for line in text.splitlines() if line.strip()])


def test_it_is_as_long_as_the_page_says() -> None:
    body = re.search(r"class WarmPools.*?\n\n\n", block("python"), re.DOTALL)
    assert body is not None
    assert f"in {lines(block('python'))} lines of Python, {lines(body[0])} of them the controller" in PAGE


@pytest.mark.parametrize("data", [{"image": "demo", "command": "sleep 1000", "size": "many"}, {"size": "3"}])
@virtual_time
async def test_input_that_cannot_work_is_told_once_without_a_traceback(
    caplog: pytest.LogCaptureFixture, data: dict[str, str]
) -> None:
    client = connect(await start())
    await client.create(
        CONFIG_MAPS, {"metadata": {"name": "ci", "labels": {"warm-pool": ""}}, "data": data}, "default"
    )
    async with running(client):
        await asyncio.sleep(60)
    await client.close()
    [record] = [record for record in caplog.records if record.levelname != "INFO"]
    assert record.message.startswith(
        "warm-pools: default/ci failed permanently, not retrying: a pool needs an image, a command and a size"
    )
    assert record.exc_info is None


@virtual_time
async def test_pods_come_are_replaced_and_go_as_the_pool_asks() -> None:
    client = connect(await start())
    await make_pool(client, 3)
    async with running(client):
        await asyncio.sleep(5)
        made = await pods(client)
        assert len(made) == 3
        assert {pod["spec"]["containers"][0]["image"] for pod in made} == {"demo"}
        [owner] = {pod["metadata"]["ownerReferences"][0]["name"] for pod in made}
        assert owner == "ci"
        lost = made[0]["metadata"]["name"]
        await client.delete(PODS, lost, "default")
        await asyncio.sleep(5)
        names = {pod["metadata"]["name"] for pod in await pods(client)}
        assert len(names) == 3
        assert lost not in names
        await resize(client, 1)
        await asyncio.sleep(5)
        assert len(await pods(client)) == 1
        told = [event["reason"] for event in (await client.list(EVENTS, "default")).items]
    assert (told.count("SuccessfulCreate"), told.count("SuccessfulDelete")) == (4, 2)
    await client.close()


@virtual_time
async def test_config_maps_without_the_label_are_nobodys() -> None:
    client = connect(await start())
    plain = {"metadata": {"name": "plain"}, "data": {"image": "demo", "command": "sleep 1000", "size": "2"}}
    await client.create(CONFIG_MAPS, plain, "default")
    async with running(client):
        await asyncio.sleep(5)
        assert await pods(client) == []
    await client.close()


@virtual_time
async def test_killed_at_any_step_and_started_again_it_makes_no_duplicates() -> None:
    client = connect(await start())
    await make_pool(client, 20)
    for turns in range(0, 200, 7):
        async with running(client):
            for _ in range(turns):
                await asyncio.sleep(0)
        assert len(await pods(client)) <= 20
    async with running(client):
        await asyncio.sleep(5)
    assert len(await pods(client)) == 20
    await client.close()


async def _late(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(body):
        async for piece in body:
            await asyncio.sleep(2)
            yield piece


@virtual_time
async def test_a_slow_watch_never_makes_it_create_or_delete_twice() -> None:
    async def slow_watch(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if "watch" in request.query and request.path.endswith("/pods"):
            response.body = _late(stream_of(response))
        return response

    client = connect(await start(), slow_watch)
    await make_pool(client, 10)
    seen: list[int] = []
    async with running(client):
        for number in range(600):
            if number == 300:
                await resize(client, 4)
            await asyncio.sleep(0.1)
            seen.append(len(await pods(client)))
    assert (max(seen), seen[299], min(seen[299:]), seen[-1]) == (10, 10, 4, 4)
    await client.close()


@virtual_time
async def test_a_pool_made_anew_under_its_name_takes_nothing_from_the_old_one() -> None:
    client = connect(await start())
    await make_pool(client, 2)
    async with running(client):
        await asyncio.sleep(5)
        old = {pod["metadata"]["uid"] for pod in await pods(client)}
        await client.delete(CONFIG_MAPS, "ci", "default")
        await make_pool(client, 3)
        await asyncio.sleep(5)
        now = {pod["metadata"]["uid"] for pod in await pods(client)}
    assert (len(old), len(now - old), len(now & old)) == (2, 3, 2)
    await client.close()


@virtual_time
async def test_a_quota_that_refuses_is_tried_ever_more_slowly_and_nothing_is_waited_for() -> None:
    tries = 0
    is_full = True

    async def quota(request: Request, to_server: Handler) -> Response:
        nonlocal tries
        if request.method == "POST" and request.path.endswith("/pods"):
            tries += 1
            if is_full:
                return refusal(403, "Forbidden")
        return await to_server(request)

    client = connect(await start(), quota)
    await make_pool(client, 50)
    async with running(client) as controller:
        await asyncio.sleep(60)
        assert 5 <= tries <= 16
        assert controller.expected.is_satisfied(("default", "ci"))
        is_full = False
        await asyncio.sleep(120)
        assert len(await pods(client)) == 50
    await client.close()
