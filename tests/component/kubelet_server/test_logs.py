"""Logs of real containers through the node's endpoint."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.component.kubelet_server.kit import World
from tests.kit.wait import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINE = "2030-01-01T00:00:00.000000000Z stdout F {}\n"


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


async def test_a_container_that_said_nothing_has_an_empty_log(world: World) -> None:
    await world.pods.run("web", "sleep 100")
    assert await world.get("/containerLogs/default/web/main") == (200, "")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("tailLines=1", "c\n"),
        ("tailLines=0", ""),
        ("tail=all", "a\nb\nc\n"),
        ("limitBytes=3", "a\nb"),
        ("stream=Stderr", ""),
        ("sinceSeconds=3600", "a\nb\nc\n"),
        ("sinceTime=2999-01-01T00:00:00Z", ""),
    ],
)
async def test_of_a_log_as_much_as_is_asked_for(world: World, query: str, shown: str) -> None:
    await ended(world, "web", "printf 'a\\nb\\nc\\n'")
    assert await world.get(f"/containerLogs/default/web/main?{query}") == (200, shown)


async def test_timestamps_stand_before_each_line(world: World) -> None:
    await ended(world, "web", "echo one")
    _, text = await world.get("/containerLogs/default/web/main?timestamps=true")
    time, _, rest = text.partition(" ")
    assert (len(time), time[-1], rest) == (len("2030-01-01T00:00:00.000000000Z"), "Z", "one\n")


async def test_a_line_of_a_megabyte_comes_whole(world: World) -> None:
    await ended(world, "web", "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end")
    _, text = await world.get("/containerLogs/default/web/main?timestamps=1")
    lines = text.splitlines()
    assert [len(line.partition(" ")[2]) for line in lines] == [1_000_000, 3]


async def test_a_log_is_followed_until_its_container_ends(world: World) -> None:
    go = world.folder / "go"
    os.mkfifo(go)
    await world.pods.run("web", f"echo one; read x < {go}; echo two")
    async with world.caller().get(f"{world.url}/containerLogs/default/web/main?follow=true") as answer:
        assert await answer.content.readline() == b"one\n"
        await asyncio.to_thread(go.write_text, "x\n")
        assert await answer.content.read() == b"two\n"


async def test_a_followed_log_goes_on_in_the_file_that_took_its_place(world: World) -> None:
    pod = await world.pods.run("web", "sleep 100")
    container_id = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    path = (await world.runtime.container_status(container_id)).log_path
    assert path is not None
    path.write_text(LINE.format("before"))
    async with world.caller().get(
        f"{world.url}/containerLogs/default/web/main?follow=1&tailLines=1"
    ) as answer:
        assert await answer.content.readline() == b"before\n"
        with path.open("a") as file:
            path.rename(path.with_name("0.log.old"))
            file.write(LINE.format("last of the old"))
        path.write_text(LINE.format("first of the new"))
        assert await answer.content.readline() == b"last of the old\n"
        assert await answer.content.readline() == b"first of the new\n"
        with path.open("a") as file:
            file.write(LINE.format("second of the new"))
        assert await answer.content.readline() == b"second of the new\n"


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


async def test_the_log_of_the_instance_before(world: World) -> None:
    first = await ended(world, "web", "echo first")
    pod = world.pods.known["default", "web"]
    second = await world.pods.start(pod, "main", "echo second; sleep 100", attempt=1)
    last = {"terminated": {"exitCode": 0, "containerID": f"process://{first}"}}
    world.pods.show(pod, "main", {"running": {}}, second, last)
    assert await world.get("/containerLogs/default/web/main?previous=true") == (200, "first\n")


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
