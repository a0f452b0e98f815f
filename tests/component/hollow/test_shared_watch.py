"""One watch for many nodes, over a way to the server that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from podlife.api.codec import Object
from podlife.client import CONFIG_MAPS, EventType
from podlife.errors import ForbiddenError, PodlifeError
from podlife.kubelet.hollow.shared_watch import SharedWatch
from podlife.testing import virtual_time
from tests.component.informer.world import World, refusal
from tests.kit.wait import until


class Seen:
    """What a feed tells of, put together."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def change(self, type_: EventType, obj: Object) -> None:
        assert "managedFields" not in obj["metadata"]
        name = obj["metadata"]["name"]
        if type_ is EventType.DELETED:
            del self.values[name]
        else:
            self.values[name] = obj["data"]["v"]


async def confirmed() -> None:
    """It is the same cluster as before."""


@asynccontextmanager
async def following(world: World, confirm: Callable[[], Awaitable[None]] = confirmed) -> AsyncIterator[Seen]:
    seen = Seen()
    feed = SharedWatch(world.client, CONFIG_MAPS, seen.change, confirm=confirm)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(feed.run())
        await feed.synced.wait()
        yield seen
        task.cancel()


@virtual_time
async def test_after_an_interruption_it_goes_on_where_it_was() -> None:
    world = await World.start("a", "b")
    async with following(world) as seen:
        world.line.go_down()
        await world.delete("b")
        await world.put("c", "new")
        await asyncio.sleep(300)
        assert seen.values == {"a": "", "b": ""}
        world.line.is_down = False
        await until(lambda: seen.values == {"a": "", "c": "new"})


@virtual_time
async def test_what_went_while_the_server_forgot_where_it_was_is_told_of_all_the_same() -> None:
    world = await World.start("a", "b")
    async with following(world) as seen:
        world.line.refuse(refusal(410, "Expired"), where="resourceVersion=")
        world.line.go_down()
        await world.delete("b")
        await world.put("c", "new")
        world.line.is_down = False
        await until(lambda: seen.values == {"a": "", "c": "new"})


@virtual_time
async def test_a_list_of_another_cluster_is_not_believed() -> None:
    world = await World.start("a", "b")
    is_same = True

    async def confirm() -> None:
        if not is_same:
            raise PodlifeError("another cluster")

    async with following(world, confirm) as seen:
        is_same = False
        world.line.refuse(refusal(410, "Expired"), where="resourceVersion=")
        world.line.go_down()
        await world.delete("b")
        await world.put("c", "new")
        world.line.is_down = False
        await asyncio.sleep(300)
        assert seen.values == {"a": "", "b": ""}
        is_same = True
        await until(lambda: seen.values == {"a": "", "c": "new"})


@virtual_time
async def test_a_server_that_does_not_let_it_is_not_asked_for_ever() -> None:
    world = await World.start()
    world.line.refuse(refusal(403, "Forbidden"), times=1000)
    feed = SharedWatch(world.client, CONFIG_MAPS, Seen().change, confirm=confirmed)
    with pytest.raises(ForbiddenError):
        async with asyncio.timeout(60):
            await feed.run()
