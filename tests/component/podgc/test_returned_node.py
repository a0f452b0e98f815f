"""A node that comes back while the collector's watch is down: its pods stay, though the server said that it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from podlife.client import NODES, PODS
from podlife.errors import UnreachableError
from podlife.testing import Cluster, virtual_time
from podlife.wire import Handler, Request, Response

COLLECTOR = "pod-garbage-collector-controller"
POD = {
    "metadata": {"name": "web"},
    "spec": {"nodeName": "away", "containers": [{"name": "main", "image": "app"}]},
}


class SlowNodes:
    """The collector's way to the server. The answer that there is no such node is on its way while `meanwhile` happens;
    from then on the watch of nodes can be begun, and says nothing before it is released."""

    def __init__(self, cluster: Cluster, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self.faults = cluster.controllers.faults(COLLECTOR)
        self.is_down = False
        self.is_held = False
        self.released = asyncio.Event()
        self.answers = 0
        self._meanwhile = meanwhile

    async def __call__(self, request: Request, onwards: Handler) -> Response:
        is_watch = request.path == "/api/v1/nodes" and "watch" in request.query
        if is_watch and self.is_down:
            raise UnreachableError("the server is down")
        answer = await onwards(request)
        if is_watch and self.is_held:
            assert isinstance(answer.body, AsyncIterator)
            answer.body = self._hold(answer.body)
        if request.path == "/api/v1/nodes/away" and answer.status == 404:
            self.answers += 1
            await self._meanwhile()
        return answer

    async def _hold(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await self.released.wait()
        async for piece in body:
            yield piece


async def is_there(cluster: Cluster) -> bool:
    return [pod["metadata"]["name"] for pod in (await cluster.client.list(PODS, "default")).items] == ["web"]


@virtual_time
async def test_a_404_that_comes_while_the_watch_is_down_makes_no_orphan() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def go_down_and_come_back() -> None:
            slow.is_down = True
            slow.faults.break_watches()
            await cluster.client.create(NODES, {"metadata": {"name": "away"}})
            await asyncio.sleep(1)

        slow = SlowNodes(cluster, go_down_and_come_back)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers, within=120)
        await asyncio.sleep(10)
        slow.is_down, slow.is_held = False, True
        await cluster.until(lambda: not cluster.controllers.complaint, within=120)
        await asyncio.sleep(30)
        assert await is_there(cluster)
        slow.released.set()
        await asyncio.sleep(300)
        assert await is_there(cluster)
        assert slow.answers == 1


@virtual_time
async def test_a_404_that_comes_once_the_watch_is_resumed_and_before_its_events_makes_no_orphan() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def be_interrupted_and_come_back() -> None:
            slow.is_held = True
            slow.faults.break_watches()
            await cluster.client.create(NODES, {"metadata": {"name": "away"}})
            await asyncio.sleep(0.1)
            await cluster.until(lambda: not cluster.controllers.complaint, within=20)

        slow = SlowNodes(cluster, be_interrupted_and_come_back)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers, within=120)
        await asyncio.sleep(30)
        assert await is_there(cluster)
        slow.released.set()
        await asyncio.sleep(300)
        assert await is_there(cluster)


@virtual_time
async def test_the_pods_of_a_node_that_stays_away_go_after_an_interruption_too() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def be_interrupted() -> None:
            if slow.answers == 1:
                slow.faults.break_watches()
                await asyncio.sleep(1)

        slow = SlowNodes(cluster, be_interrupted)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers == 2, within=300)
        await asyncio.sleep(60)
        assert not await is_there(cluster)
