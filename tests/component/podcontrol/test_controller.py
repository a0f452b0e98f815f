"""A controller of a user's own on pod control and nothing else, on the embedded server under virtual time.

It keeps as many pods as its ReplicaSet asks for. What is looked at is the server: how many pods there are, whose they
are, what its events say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.api.selectors import label_selector_from_dict
from podlife.client import EVENTS, PODS, REPLICA_SETS, Client
from podlife.controller import Again, Controller
from podlife.events import Recorder
from podlife.informer import Informer
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    POD_INDEXERS,
    ControllerRefManager,
    EnqueueOwner,
    Expectations,
    OwnedPod,
    PodControl,
    deletion_order,
    is_active,
    owner_of,
    pods_of_owner,
    recheck_owner,
    slow_start,
)
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workqueue import RateLimitedQueue
from tests.kit.embedded import connect, refusal, start

KEY = ("default", "web")
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class Observer(EnqueueOwner):
    """Lowers expectations before the owner is enqueued."""

    expectations: Expectations

    def on_add(self, obj: OwnedPod) -> None:
        self.expectations.observe_creation(KEY)
        super().on_add(obj)

    def on_delete(self, obj: OwnedPod) -> None:
        self.expectations.observe_deletion(KEY)
        super().on_delete(obj)


class Keeper:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.recorder = Recorder(client, "keeper", clock=LoopClock())
        self.control = PodControl(client, self.recorder)
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("keeper")
        self.expectations = Expectations()
        self.pods: Informer[OwnedPod] = Informer(client, PODS, view=OwnedPod, indexers=POD_INDEXERS)
        observer = Observer(self.queue, REPLICA_SETS)
        observer.expectations = self.expectations
        self.pods.add_handler(observer)
        self.controller = Controller("keeper", self.queue, self.reconcile)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.recorder.run())
            group.create_task(self.pods.run())
            await self.pods.wait_for_sync(seconds=30)
            self.queue.add(KEY)
            group.create_task(self.controller.run())

    async def reconcile(self, key: Key) -> Again | None:
        if not self.expectations.is_satisfied(key):
            return None
        namespace, name = key
        replica_set: Object = await self.client.get(REPLICA_SETS, name, namespace)
        owner = owner_of(replica_set, REPLICA_SETS)
        spec = replica_set["spec"]
        manager: ControllerRefManager[OwnedPod] = ControllerRefManager(
            owner,
            label_selector_from_dict(spec["selector"]),
            self.control.patch_pod,
            can_adopt=recheck_owner(self.client, REPLICA_SETS, owner),
        )
        found = pods_of_owner(self.pods.cache, owner, with_orphans=True)
        claim = await manager.claim(filter(is_active, found))
        claim.raise_errors()
        missing = spec["replicas"] - len(claim.claimed)
        if missing > 0:
            self.expectations.expect_creations(key, missing)
            ref = owner.controller_ref()
            made = await slow_start(
                missing, lambda: self.control.create_pods(namespace, spec["template"], owner, ref)
            )
            self.expectations.add(key, creations=made.succeeded - missing)
            made.raise_error()
        elif missing < 0:
            self.expectations.expect_deletions(key, -missing)
            for pod in deletion_order(claim.claimed)[:-missing]:
                metadata = pod.metadata
                await self.control.delete_pod(namespace, metadata.name, owner, uid=metadata.uid)
        return None


@asynccontextmanager
async def keeping(client: Client) -> AsyncIterator[Keeper]:
    keeper = Keeper(client)
    running = asyncio.get_running_loop().create_task(keeper.run())
    try:
        yield keeper
    finally:
        await cancel_and_wait(running)


async def make_replica_set(client: Client, replicas: int) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    await client.create(REPLICA_SETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})


async def pods(client: Client) -> list[Any]:
    return list((await client.list(PODS, "default")).items)


async def events(client: Client) -> dict[str, list[Object]]:
    by_reason: dict[str, list[Object]] = {}
    for event in (await client.list(EVENTS, "default")).items:
        by_reason.setdefault(event["reason"], []).append(event)
    return by_reason


@virtual_time
async def test_pods_are_created_kept_adopted_and_deleted_as_asked_for() -> None:
    client = connect(await start())
    await make_replica_set(client, 5)
    orphan = {"metadata": {"name": "orphan", "namespace": "default", **TEMPLATE["metadata"]}}
    await client.create(PODS, {**orphan, "spec": TEMPLATE["spec"]})
    async with keeping(client) as keeper:
        await asyncio.sleep(5)
        owners = {pod["metadata"]["ownerReferences"][0]["name"] for pod in await pods(client)}
        assert (len(await pods(client)), owners) == (5, {"web"})
        # One is lost, and another one comes.
        await client.delete(PODS, "orphan", "default")
        await asyncio.sleep(5)
        assert len(await pods(client)) == 5
        assert "orphan" not in {pod["metadata"]["name"] for pod in await pods(client)}
        await client.scale(REPLICA_SETS, "web", "default", 2)
        keeper.queue.add(KEY)
        await asyncio.sleep(5)
        assert len(await pods(client)) == 2
        told = await events(client)
    assert len(told["SuccessfulCreate"]) == 5
    assert len(told["SuccessfulDelete"]) == 3
    event = told["SuccessfulCreate"][0]
    assert event["involvedObject"]["kind"] == "ReplicaSet"
    assert event["involvedObject"]["uid"]
    assert event["source"]["component"] == "keeper"
    await client.close()


@virtual_time
async def test_quota_that_refuses_is_told_and_tried_again_ever_more_slowly() -> None:
    is_full = True
    tries: list[float] = []

    async def quota(request: Request, to_server: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/pods"):
            tries.append(asyncio.get_running_loop().time())
            if is_full:
                return refusal(403, "Forbidden")
        return await to_server(request)

    client = connect(await start(), quota)
    await make_replica_set(client, 100)
    async with keeping(client) as keeper:
        await asyncio.sleep(60)
        # One pod of a hundred is tried each time, and the distance doubles from 5 ms.
        assert 5 <= len(tries) <= 16
        assert keeper.expectations.is_satisfied(KEY), "what was not created is not expected"
        told = await events(client)
        assert {event["message"] for event in told["FailedCreate"]} == {"Error creating: no: 403"}
        is_full = False
        await asyncio.sleep(120)
        assert len(await pods(client)) == 100
    await client.close()


async def late(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(body):
        async for piece in body:
            await asyncio.sleep(2)
            yield piece


@virtual_time
async def test_controller_that_is_behind_its_cache_never_creates_twice() -> None:
    async def slow_watch(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if "watch" in request.query:
            response.body = late(response.body)  # type: ignore[arg-type]
        return response

    client = connect(await start(), slow_watch)
    await make_replica_set(client, 10)
    most = 0
    async with keeping(client) as keeper:
        for _ in range(300):
            # Woken again and again, long before the cache has what was created.
            keeper.queue.add(KEY)
            await asyncio.sleep(0.1)
            most = max(most, len(await pods(client)))
        assert len(keeper.pods.cache) == 10
    assert (most, len(await pods(client))) == (10, 10)
    await client.close()


@virtual_time
async def test_controller_that_is_killed_and_started_again_makes_no_duplicates() -> None:
    client = connect(await start())
    await make_replica_set(client, 20)
    for turns in range(0, 120, 7):
        async with keeping(client):
            for _ in range(turns):
                await asyncio.sleep(0)
        assert len(await pods(client)) <= 20
    async with keeping(client):
        await asyncio.sleep(5)
    assert len(await pods(client)) == 20
    await client.close()
