"""ReplicaSets on a server that is slow, that refuses, or from which one is cut off; and a controller that is killed.

On the embedded server under virtual time. What is looked at is what the server holds, and what was asked of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.storage import Key, Put
from podlife.client import NAMESPACES, PODS, REPLICA_SETS, Client
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.replicaset import ReplicaSetController
from tests.kit.embedded import connect, refusal, start
from tests.workloads.disturbances import Asked, CutAtCreation, cut_off, is_creation, is_watch, late_watch
from tests.workloads.objects import labelled_pod, replica_set
from tests.workloads.runs import at_work

Object = dict[str, Any]


@asynccontextmanager
async def controlling(client: Client, *, burst: int = 500) -> AsyncIterator[ReplicaSetController]:
    plane = ControlPlane(client, clock=LoopClock())
    controller = ReplicaSetController(plane, burst=burst)
    plane.add(controller)
    async with at_work(plane.run):
        yield controller


async def make(client: Client, replicas: int, **spec: Any) -> Object:
    made: Object = await client.create(REPLICA_SETS, replica_set("web", replicas, **spec), "default")
    return made


async def pods(client: Client) -> list[Object]:
    return list((await client.list(PODS, "default")).items)


async def owners(client: Client) -> list[str]:
    """The UID of each pod's controller."""
    return [pod["metadata"]["ownerReferences"][0]["uid"] for pod in await pods(client)]


# Killed and started again


@virtual_time
async def test_controller_that_is_killed_at_any_step_makes_no_duplicates() -> None:
    server = await start()
    client = connect(server)
    await make(client, 20)
    for turns in range(0, 240, 3):
        other = connect(server)
        async with controlling(other, burst=7):
            for _ in range(turns):
                await asyncio.sleep(0)
        await other.close()
        assert len(await pods(client)) <= 20
    async with controlling(client):
        await asyncio.sleep(5)
    assert len(await pods(client)) == 20


@virtual_time
async def test_controller_that_is_killed_as_it_scales_down_deletes_none_too_many() -> None:
    server = await start()
    client = connect(server)
    await make(client, 20)
    async with controlling(client):
        await asyncio.sleep(5)
    await client.scale(REPLICA_SETS, "web", "default", 5)
    for turns in range(0, 200, 3):
        other = connect(server)
        async with controlling(other, burst=4):
            for _ in range(turns):
                await asyncio.sleep(0)
        await other.close()
        assert len(await pods(client)) >= 5
    async with controlling(client):
        await asyncio.sleep(5)
    assert len(await pods(client)) == 5


# Behind, and cut off


async def counts(client: Client, controller: ReplicaSetController) -> list[int]:
    """How many pods there were at any time, for half a minute in which the controller is woken again and again."""
    seen = []
    for _ in range(300):
        controller.queue.add(("default", "web"))
        await asyncio.sleep(0.1)
        seen.append(len(await pods(client)))
    return seen


@virtual_time
async def test_controller_whose_watch_is_slow_never_creates_twice() -> None:
    client = connect(await start(), late_watch("/pods"))
    await make(client, 10)
    async with controlling(client) as controller:
        seen = await counts(client, controller)
    assert (max(seen), seen[-1]) == (10, 10)


@virtual_time
async def test_controller_whose_watch_is_slow_never_deletes_twice() -> None:
    asked = Asked(late_watch("/pods"))
    client = connect(await start(), asked)
    await make(client, 10)
    async with controlling(client) as controller:
        await asyncio.sleep(60)
        await client.scale(REPLICA_SETS, "web", "default", 4)
        seen = await counts(client, controller)
    assert (min(seen), seen[-1]) == (4, 4)
    assert len(asked.times("DELETE")) == 6


@virtual_time
async def test_controller_whose_watch_is_cut_as_it_creates_never_creates_twice() -> None:
    """The pods' watch ends with the first pod that is created, and the history is gone by the time it is resumed."""
    cut = CutAtCreation("pods")
    client = connect(await start(), cut)
    await make(client, 10)
    async with controlling(client) as controller:
        for _ in range(100):
            controller.queue.add(("default", "web"))
            await asyncio.sleep(0.3)
            assert len(await pods(client)) <= 10
    assert cut.refused == 3
    assert len(await pods(client)) == 10


@virtual_time
async def test_controller_that_is_cut_off_does_nothing_however_long_it_takes() -> None:
    """Expectations end after five minutes; what a cache nobody feeds would say then is not believed."""
    away = asyncio.Event()

    cut = cut_off(away.is_set, lambda request: is_watch(request, "/pods"))

    async def gone(request: Request, to_server: Handler) -> Response:
        if is_creation(request):
            away.set()
        return await cut(request, to_server)

    server = await start()
    client, looking = connect(server, gone), connect(server)
    async with controlling(client) as controller:
        await make(looking, 3)
        for _ in range(30):
            await asyncio.sleep(60)
            controller.queue.add(("default", "web"))
        assert away.is_set()
        assert len(await pods(looking)) == 3
        away.clear()
        await asyncio.sleep(120)
        assert len(await pods(looking)) == 3
        status = (await looking.get(REPLICA_SETS, "web", "default"))["status"]
    assert status["replicas"] == 3


# Deleted, and made again under its name


@virtual_time
async def test_replica_set_made_again_does_not_wait_for_what_the_first_one_expected() -> None:
    """The first one is deleted while its pods are being made: nobody will see them come for it."""

    async def slow_creation(request: Request, to_server: Handler) -> Response:
        if is_creation(request):
            await asyncio.sleep(5)
        return await to_server(request)

    client = connect(await start(), slow_creation)
    async with controlling(client):
        await make(client, 3)
        await asyncio.sleep(1)
        await client.delete(REPLICA_SETS, "web", "default")
        new = await make(client, 2)
        await asyncio.sleep(60)
    assert (await owners(client)).count(new["metadata"]["uid"]) == 2


@virtual_time
async def test_owner_that_is_gone_at_the_server_adopts_nothing_though_its_cache_still_has_it() -> None:
    server = await start()
    client, looking = connect(server, late_watch("/replicasets", 30)), connect(server)
    await make(looking, 0)
    async with controlling(client):
        await asyncio.sleep(120)
        await looking.delete(REPLICA_SETS, "web", "default")
        await make(looking, 0)
        await looking.create(PODS, labelled_pod("orphan"), "default")
        await asyncio.sleep(20)
        [pod] = await pods(looking)
        assert "ownerReferences" not in pod["metadata"]
        # Its successor adopts it, and has one too many.
        await asyncio.sleep(300)
    assert await pods(looking) == []


# Refused


@virtual_time
async def test_quota_that_is_met_after_a_burst_that_went_well_is_run_into_by_few() -> None:
    """A burst begins with one, the one after it with as many as are sent at once; where those are refused, with one
    again."""
    created = 0
    refusals: list[float] = []

    async def quota(request: Request, to_server: Handler) -> Response:
        nonlocal created
        if not is_creation(request):
            return await to_server(request)
        if created >= 500:
            refusals.append(asyncio.get_running_loop().time())
            return refusal(403, "Forbidden")
        created += 1
        return await to_server(request)

    client = connect(await start(), quota)
    await make(client, 2000)
    async with controlling(client):
        await asyncio.sleep(60)
    assert len(await pods(client)) == 500
    at_first = [moment for moment in refusals if moment - refusals[0] < 0.001]
    # The status that tells of it wakes it once more.
    assert 32 <= len(at_first) <= 34
    assert len(refusals) - len(at_first) <= 20


@virtual_time
async def test_terminating_namespace_is_neither_told_of_nor_tried_again_and_again() -> None:
    asked = Asked()
    client = connect(await start(), asked)
    await client.create(NAMESPACES, {"metadata": {"name": "going"}})
    await client.create(REPLICA_SETS, replica_set("web", 50), "going")
    async with controlling(client) as controller:
        await asyncio.sleep(5)
        await client.delete(NAMESPACES, "going")
        told = len(asked.times("POST", "/events"))
        for pod in (await client.list(PODS, "going")).items:
            await client.delete(PODS, pod["metadata"]["name"], "going")
            await asyncio.sleep(1)
        replica_set_now = await client.get(REPLICA_SETS, "web", "going")
        assert controller.controller.metrics.results["error"] == 0
    # Fifty pods went, and one try was enough to know.
    assert len(asked.times("POST", "/pods")) == 51
    assert len(asked.times("POST", "/events")) == told
    assert "conditions" not in replica_set_now["status"]


@virtual_time
async def test_selector_that_cannot_be_is_given_up_with_one_clear_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = await start()
    client = connect(server)
    async with controlling(client) as controller:
        await put_unchecked(server, {"matchExpressions": [{"key": "app", "operator": "Near"}]})
        await asyncio.sleep(60)
        assert controller.controller.metrics.results == {"terminal_error": 1}
    assert "ReplicaSet default/web" in caplog.text
    assert "Traceback" not in caplog.text


async def put_unchecked(server: ApiHandler, selector: Object) -> None:
    """A ReplicaSet that this server would have refused, as one written by another version might be."""
    made = replica_set("web", 1)
    made["metadata"] |= {"namespace": "default", "uid": "u-1"}
    made |= {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    made["spec"]["selector"] = selector

    def encode(revision: int) -> bytes:
        made["metadata"]["resourceVersion"] = str(revision)
        return json.dumps(made).encode()

    await server.registry.store.commit(Put(Key("replicasets.apps", "default", "web"), encode, expected=0))


# What is not done


@virtual_time
@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        (lambda status: status | {"podIP": "192.0.2.1"}, False),
        (lambda status: status | {"phase": "Running"}, False),
        (lambda status: status | {"phase": "Failed"}, True),
    ],
)
async def test_changes_of_a_pod_that_count_for_nothing_wake_nobody(
    change: Callable[[Object], Object], is_noticed: bool
) -> None:
    client = connect(await start())
    await make(client, 1)
    async with controlling(client) as controller:
        await asyncio.sleep(5)
        before = controller.controller.metrics.results.total()
        [pod] = await pods(client)
        pod["status"] = change(pod["status"])
        await client.update(PODS, pod, subresource="status")
        await asyncio.sleep(5)
        assert (controller.controller.metrics.results.total() > before) == is_noticed


@virtual_time
async def test_a_thousand_pods_take_few_looks_and_few_requests() -> None:
    asked = Asked()
    client = connect(await start(), asked)
    await make(client, 1000)
    async with controlling(client) as controller:
        await asyncio.sleep(30)
        looks = controller.controller.metrics.results.total()
    assert len(await pods(client)) == 1000
    assert len(asked.times("POST", "/pods")) == 1000
    assert looks < 100
    assert len(asked.times("PATCH", "/status")) < 10
    assert asked.times("GET", "/web") == [], "no status was overtaken by the one before it"
