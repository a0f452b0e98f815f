"""Deployments on a server that is slow, that refuses, or from which one is cut off; and a controller that is killed.

On the embedded server under virtual time, with the ReplicaSets' controller beside it and a stand-in for the nodes.
What is looked at is what the server holds, and what was asked of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.storage import Key, Put
from podlife.client import DEPLOYMENTS, EVENTS, NAMESPACES, REPLICA_SETS, Client
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.deployment import DeploymentController
from podlife.workloads.replicaset import ReplicaSetController
from tests.kit.embedded import connect, refusal, start, stream_of
from tests.workloads.disturbances import (
    Asked,
    CutAtCreation,
    cut_off,
    is_creation,
    is_watch,
    late,
    late_watch,
    until,
)
from tests.workloads.objects import template
from tests.workloads.runs import EmbeddedQuota, at_work, observing
from tests.workloads.scenarios.deployment import SECOND, deployment, orphan
from tests.workloads.world import World

Object = dict[str, Any]

KEY = ("default", "web")
FIRST = template("web")["spec"]["containers"][0]["image"]


@asynccontextmanager
async def controlling(client: Client) -> AsyncIterator[DeploymentController]:
    plane = ControlPlane(client, clock=LoopClock())
    controller = DeploymentController(plane)
    plane.add(controller)
    plane.add(ReplicaSetController(plane))
    async with at_work(plane.run):
        yield controller


@asynccontextmanager
async def with_nodes(client: Client) -> AsyncIterator[World]:
    async with observing(client, EmbeddedQuota(), clock=LoopClock()) as cluster:
        world = World(cluster, "default")
        async with at_work(world.node.run):
            yield world


async def make(client: Client, replicas: int, **spec: Any) -> Object:
    made: Object = await client.create(DEPLOYMENTS, deployment("web", replicas, **spec), "default")
    return made


async def get(client: Client) -> Object:
    found: Object = await client.get(DEPLOYMENTS, "web", "default")
    return found


async def change_image(client: Client, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await client.patch(
        DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}}, "default"
    )


async def replica_sets(client: Client) -> list[Object]:
    return list((await client.list(REPLICA_SETS, "default")).items)


async def sizes(client: Client) -> dict[str, int]:
    """By image: there is never more than one ReplicaSet of a template."""
    known = await replica_sets(client)
    images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in known]
    assert len(images) == len(set(images)), f"two of one template: {images}"
    return {image: each["spec"]["replicas"] for image, each in zip(images, known, strict=True)}


async def messages(client: Client, reason: str, namespace: str = "default") -> list[str]:
    events = (await client.list(EVENTS, namespace)).items
    return [event["message"] for event in events if event["reason"] == reason]


async def condition(client: Client, type_: str) -> Object:
    found: list[Object] = [
        each for each in (await get(client))["status"].get("conditions", []) if each["type"] == type_
    ]
    return found[0] if found else {}


# Killed and started again


@virtual_time
async def test_controller_that_is_killed_at_any_step_makes_no_duplicates_and_keeps_its_bounds() -> None:
    server = await start()
    client = connect(server)
    await make(client, 3)
    places = set()
    async with with_nodes(client):
        async with controlling(client):
            await asyncio.sleep(30)
        for turns in range(0, 48, 2):
            image = f"registry.example/killed:{turns}"
            await change_image(client, image)
            other = connect(server)
            async with controlling(other):
                for _ in range(turns):
                    await asyncio.sleep(0)
            await other.close()
            places.add((await sizes(client)).get(image))
            assert sum((await sizes(client)).values()) <= 4
            async with controlling(client):
                await asyncio.sleep(30)
            left = {name: size for name, size in (await sizes(client)).items() if size}
            assert left == {image: 3}
    assert places == {None, 1, 2, 3}, "it was killed before the first step, and between all of them"
    found = await get(client)
    assert "collisionCount" not in found["status"]
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "25"
    assert len(await replica_sets(client)) == 11, "the limit of the history is kept"


# Behind, and cut off


@virtual_time
async def test_controller_whose_watch_is_slow_never_creates_twice_and_keeps_its_bounds() -> None:
    asked = Asked(late_watch("/replicasets"))
    server = await start()
    client, looking = connect(server, asked), connect(server)
    await make(looking, 3)
    async with controlling(client) as controller, with_nodes(looking):
        for moment in range(600):
            # Woken again and again, long before the cache has what was written.
            controller.queue.add(KEY)
            await asyncio.sleep(0.2)
            if moment == 100:
                await change_image(looking, SECOND)
            assert sum((await sizes(looking)).values()) <= 4
    assert await sizes(looking) == {FIRST: 0, SECOND: 3}
    assert len(asked.times("POST", "/replicasets")) == 2
    assert "collisionCount" not in (await get(looking))["status"]


@virtual_time
async def test_controller_whose_watch_is_cut_as_it_creates_never_creates_twice() -> None:
    """The ReplicaSets' watch ends with the first that is created, and the history is gone when it is resumed."""
    cut = CutAtCreation("replicasets")
    asked = Asked(cut)
    client = connect(await start(), asked)
    await make(client, 3)
    async with controlling(client) as controller:
        for _ in range(100):
            controller.queue.add(KEY)
            await asyncio.sleep(0.3)
    assert cut.refused == 3
    assert len(asked.times("POST", "/replicasets")) == 1
    assert await sizes(client) == {FIRST: 3}


@virtual_time
async def test_controller_that_is_cut_off_writes_nothing_however_long_it_takes() -> None:
    away = asyncio.Event()

    asked = Asked(cut_off(away.is_set, lambda request: is_watch(request, "/replicasets")))
    server = await start()
    client, looking = connect(server, asked), connect(server)
    await make(looking, 2)
    async with controlling(client) as controller, with_nodes(looking):
        await asyncio.sleep(10)
        away.set()
        # Anything ends the stream that is open; then it is away.
        [known] = await replica_sets(looking)
        about = {"metadata": {"annotations": {"a": "b"}}}
        await looking.patch(REPLICA_SETS, known["metadata"]["name"], about, "default")
        await asyncio.sleep(1)
        before = len(asked.writes)
        await change_image(looking, SECOND)
        for _ in range(30):
            await asyncio.sleep(60)
            controller.queue.add(KEY)
        assert asked.writes[before:] == []
        away.clear()
        await asyncio.sleep(300)
    assert await sizes(looking) == {FIRST: 0, SECOND: 2}


@virtual_time
async def test_write_that_the_server_has_lost_is_not_waited_for() -> None:
    """It comes back from a backup while the write is on its way to the cache: its revisions are those of before."""
    servers = [await start()]
    was_cut = asyncio.Event()

    async def restored(request: Request, _: Handler) -> Response:
        if was_cut.is_set() and len(servers) == 1:
            return refusal(503, "ServiceUnavailable")
        response = await servers[-1](request)
        if len(servers) == 1 and "watch" in request.query:
            response.body = until(late(stream_of(response)), was_cut.is_set)
        return response

    client = connect(servers[0], restored)
    for number in range(300):
        about = {"metadata": {"name": "busy", "annotations": {"n": str(number)}}}
        await (client.patch(NAMESPACES, "busy", about) if number else client.create(NAMESPACES, about))
    await make(client, 1)
    async with controlling(client):
        await asyncio.sleep(120)
        await client.scale(DEPLOYMENTS, "web", "default", 2)
        while await sizes(client) != {FIRST: 2}:
            await asyncio.sleep(0.1)
        # It was written just now, and is not in the cache yet.
        was_cut.set()
        await asyncio.sleep(10)
        servers.append(await start())
        await make(client, 3)
        await asyncio.sleep(300)
        assert await sizes(client) == {FIRST: 3}


# Deleted, and made again under its name


@virtual_time
async def test_deployment_that_is_gone_at_the_server_adopts_nothing_though_its_cache_still_has_it() -> None:
    server = await start()
    client, looking = connect(server, late_watch("/deployments", 30)), connect(server)
    await make(looking, 0)
    async with controlling(client):
        await asyncio.sleep(120)
        await looking.delete(DEPLOYMENTS, "web", "default")
        new = await make(looking, 0)
        await looking.create(REPLICA_SETS, orphan(SECOND, 0, "bcdfg"), "default")
        await asyncio.sleep(20)
        found: Object = await looking.get(REPLICA_SETS, "web-bcdfg", "default")
        assert "ownerReferences" not in found["metadata"]
        # Its successor adopts it.
        await asyncio.sleep(300)
        found = await looking.get(REPLICA_SETS, "web-bcdfg", "default")
    assert found["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]


@virtual_time
async def test_replica_set_that_another_controller_made_is_taken_over_whatever_its_hash() -> None:
    client = connect(await start())
    owner = await make(client, 2)
    made = orphan(FIRST, 2, "59fc7b8d4c")
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": owner["metadata"]["uid"],
    }
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    made["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "4"}
    await client.create(REPLICA_SETS, made, "default")
    async with controlling(client):
        await asyncio.sleep(10)
    assert [each["metadata"]["name"] for each in await replica_sets(client)] == ["web-59fc7b8d4c"]
    assert (await get(client))["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "4"


# Refused


@virtual_time
async def test_server_that_refuses_the_replica_set_is_asked_ever_more_slowly_and_the_deployment_says_why() -> (
    None
):
    is_full = True

    async def quota(request: Request, to_server: Handler) -> Response:
        return (
            refusal(403, "Forbidden")
            if is_full and is_creation(request, "replicasets")
            else await to_server(request)
        )

    asked = Asked(quota)
    client = connect(await start(), asked)
    await make(client, 2)
    async with controlling(client):
        await asyncio.sleep(60)
        tries = asked.times("POST", "/replicasets")
        assert 5 <= len(tries) <= 20
        assert tries[-1] - tries[-2] > 5
        told = await condition(client, "Progressing")
        assert (told["status"], told["reason"]) == ("False", "ReplicaSetCreateError")
        assert told["message"].startswith('Failed to create new replica set "web-')
        assert told["message"].endswith('": no: 403')
        assert set(await messages(client, "ReplicaSetCreateError")) == {told["message"]}
        is_full = False
        await asyncio.sleep(120)
    assert await sizes(client) == {FIRST: 2}


@virtual_time
async def test_terminating_namespace_is_neither_told_of_nor_tried_again_and_again() -> None:
    asked = Asked()
    client = connect(await start(), asked)
    await client.create(NAMESPACES, {"metadata": {"name": "going"}})
    await client.create(DEPLOYMENTS, deployment("web", 1, paused=True), "going")
    async with controlling(client):
        await asyncio.sleep(1)
        await client.delete(NAMESPACES, "going")
        await client.patch(DEPLOYMENTS, "web", {"spec": {"paused": None}}, "going")
        await asyncio.sleep(3600)
    assert 1 <= len(asked.times("POST", "/replicasets")) <= 3
    assert asked.times("POST", "/events") == []


@virtual_time
async def test_somebody_who_is_always_faster_is_met_again_only_now_and_then() -> None:
    async def overtaken(request: Request, to_server: Handler) -> Response:
        is_status = request.method == "PATCH" and request.path.endswith("/deployments/web/status")
        return refusal(409, "Conflict") if is_status else await to_server(request)

    asked = Asked(overtaken)
    client = connect(await start(), asked)
    await make(client, 1)
    async with controlling(client) as controller:
        await asyncio.sleep(60)
        assert controller.controller.metrics.results["error"] == 0
    assert await sizes(client) == {FIRST: 1}
    # Twice in each look: as it was seen, and as it is.
    assert len(asked.times("PATCH", "/status")) < 150


async def put_unchecked(server: ApiHandler, **spec: Any) -> None:
    """A Deployment that this server would have refused, as one written by another version might be."""
    made = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 1, **spec)}
    made["metadata"] |= {"namespace": "default", "uid": "u-1", "generation": 1}

    def encode(revision: int) -> bytes:
        made["metadata"]["resourceVersion"] = str(revision)
        return json.dumps(made).encode()

    await server.registry.store.commit(Put(Key("deployments.apps", "default", "web"), encode, expected=0))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}, "invalid label selector"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "does not match template labels 'app=web'"),
        ({"template": {"spec": {"containers": []}}}, "does not match template labels '<none>'"),
        ({"strategy": {"type": "Guess"}}, "unexpected deployment strategy type: Guess"),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "many"}}},
            "'many' is neither a number nor a percentage",
        ),
    ],
)
@virtual_time
async def test_deployment_that_cannot_work_is_given_up_with_one_clear_line(
    caplog: pytest.LogCaptureFixture, spec: Object, line: str
) -> None:
    server = await start()
    client = connect(server)
    async with controlling(client) as controller:
        await put_unchecked(server, **spec)
        await asyncio.sleep(60)
        assert controller.controller.metrics.results == {"terminal_error": 1}
    [logged] = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert line in logged
    assert "\n" not in logged
    assert await replica_sets(client) == []


@virtual_time
async def test_deployment_that_selects_everything_is_told_so_and_does_nothing() -> None:
    server = await start()
    client = connect(server)
    async with controlling(client):
        await put_unchecked(server, selector={})
        await asyncio.sleep(10)
    told = "This deployment is selecting all pods. A non-empty selector is required."
    assert set(await messages(client, "SelectingAll")) == {told}
    assert (await get(client))["status"] == {"observedGeneration": 1}
    assert await replica_sets(client) == []


# In time


@virtual_time
async def test_deployment_that_is_done_asks_nothing_of_the_server() -> None:
    asked = Asked()
    server = await start()
    client, looking = connect(server, asked), connect(server)
    await make(looking, 5)
    async with controlling(client) as controller, with_nodes(looking):
        await asyncio.sleep(30)
        writes, looks = len(asked.writes), controller.controller.metrics.results.total()
        await asyncio.sleep(7200)
        assert len(asked.writes) == writes
        # At its deadline, which was planned before it was done.
        assert controller.controller.metrics.results.total() <= looks + 1
    # What it was made with, its scaling told, and a few steps of its status.
    assert len(asked.times("POST", "/replicasets")) == 1
    assert len(asked.times("PATCH", "/deployments/web/status")) < 15
