"""Logs of real containers through the node's endpoint."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.component.kubelet_server.kit import World
from tests.kit.wait import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ended(world: World, name: str, script: str) -> str:
    """A pod whose container has run to its end; its ID."""
    pod = world.pods.add(name, "main")
    container_id = await world.pods.start(pod, "main", script)
    await world.pods.ended(container_id)
    terminated = {"terminated": {"exitCode": 0, "containerID": f"process://{container_id}"}}
    world.pods.show(pod, "main", terminated, container_id)
    return container_id


async def test_the_log_of_a_container_is_what_it_said(world: World) -> None:
    await ended(world, "web", "echo one; echo two >&2")
    status, text = await world.get("/containerLogs/default/web/main")
    assert (status, sorted(text.splitlines())) == (200, ["one", "two"])


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("tailLines=1", "c\n"),
        ("limitBytes=3", "a\nb"),
        ("sinceTime=2999-01-01T00:00:00Z", ""),
    ],
)
async def test_of_a_log_as_much_as_is_asked_for(world: World, query: str, shown: str) -> None:
    await ended(world, "web", "printf 'a\\nb\\nc\\n'")
    assert await world.get(f"/containerLogs/default/web/main?{query}") == (200, shown)


async def test_a_log_is_followed_until_its_container_ends(world: World) -> None:
    go = world.folder / "go"
    os.mkfifo(go)
    await world.pods.run("web", f"echo one; read x < {go}; echo two")
    async with world.caller().get(f"{world.url}/containerLogs/default/web/main?follow=true") as answer:
        assert await answer.content.readline() == b"one\n"
        await asyncio.to_thread(go.write_text, "x\n")
        assert await answer.content.read() == b"two\n"


async def test_a_caller_that_goes_away_leaves_no_watch_behind(world: World) -> None:
    await world.pods.run("web", "echo one; sleep 100")
    # Those themselves, not how many: what others have left may end meanwhile.
    before = asyncio.all_tasks()
    caller = world.caller()
    async with caller.get(f"{world.url}/containerLogs/default/web/main?follow=true") as answer:
        assert await answer.content.readline() == b"one\n"
        assert asyncio.all_tasks() - before
    await caller.close()
    await until(lambda: not asyncio.all_tasks() - before)


async def test_a_container_that_is_gone_is_told_with_404(world: World) -> None:
    container_id = await ended(world, "web", "echo one")
    await world.runtime.remove_container(container_id)
    line = f"unable to retrieve container logs for process://{container_id}"
    assert await world.get("/containerLogs/default/web/main") == (404, line)


@pytest.mark.parametrize(
    ("path", "code", "line"),
    [
        ("/containerLogs/default/none/main", 404, 'pod "none" does not exist'),
        ("/containerLogs/default/web/other", 404, 'container "other" not found in pod "web"'),
        (
            "/containerLogs/default/web/main",
            400,
            'container "main" in pod "web" is waiting to start: ContainerCreating',
        ),
        (
            "/containerLogs/default/web/main?previous=true",
            400,
            'previous terminated container "main" in pod "web" not found',
        ),
        ("/containerLogs/default/web/main?tailLines=x", 400, '{"message": "Unable to decode query."}'),
        ("/containerLogs/default/web/main?tailLines=-1", 422, '{"message": "Invalid request."}'),
        ("/containerLogs/default/web", 404, "404 page not found"),
    ],
)
async def test_what_cannot_be_shown_is_said_in_one_line(
    world: World, path: str, code: int, line: str
) -> None:
    pod = world.pods.add("web", "main")
    world.pods.show(pod, "main", {"waiting": {"reason": "ContainerCreating"}}, "")
    assert await world.get(path) == (code, line)
