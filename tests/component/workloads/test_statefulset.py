"""StatefulSets under faults, on the embedded server under virtual time: killed controllers, late and cut watches,
owners that were replaced, refusals, and input that cannot work."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from podlife.aio import wait_until_set
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, DeleteOptions
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.statefulset import StatefulSetController
from tests.kit.embedded import Disturbance, connect, refusal, start
from tests.workloads.disturbances import cut_off, late_watch, watching
from tests.workloads.node import PENDING, RUNS, Behaviour
from tests.workloads.objects import labelled_pod
from tests.workloads.runs import EmbeddedQuota, at_work, observing
from tests.workloads.scenarios.statefulset import (
    change,
    claim,
    policy,
    stateful_set,
    until_calm,
    until_updated,
)
from tests.workloads.world import World

STS = STATEFUL_SETS
CLAIMS = PERSISTENT_VOLUME_CLAIMS
KEY = ("default", "web")


class Counting:
    """Notes every write of the controller, and lets a test stand in the way of the rest."""

    def __init__(self, disturb: Disturbance | None = None) -> None:
        self.writes: list[str] = []
        self.times: list[float] = []
        self._disturb = disturb

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        if request.method != "GET" and "events" not in request.path:
            self.writes.append(f"{request.method} {request.path.partition('/default/')[2]}")
            self.times.append(asyncio.get_running_loop().time())
        return await (to_server(request) if self._disturb is None else self._disturb(request, to_server))

    def count(self, pattern: str) -> int:
        return sum(1 for write in self.writes if re.fullmatch(pattern, write))


@asynccontextmanager
async def a_world(behaviour: Behaviour = RUNS) -> AsyncIterator[tuple[World, ApiHandler]]:
    """A server with its users and its nodes, and nobody who looks after StatefulSets."""
    server = await start()
    async with (
        connect(server) as client,
        observing(client, EmbeddedQuota(), clock=LoopClock(), quiet_seconds=5) as cluster,
    ):
        world = World(cluster, "default")
        world.node.let(behaviour)
        async with at_work(world.node.run):
            yield world, server


@asynccontextmanager
async def controlling(
    server: ApiHandler, disturb: Disturbance | None = None
) -> AsyncIterator[StatefulSetController]:
    async with connect(server, disturb) as client:
        plane = ControlPlane(client, clock=LoopClock())
        controller = StatefulSetController(plane)
        plane.add(controller)
        async with at_work(plane.run):
            yield controller


def uids(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.pods()}


def dying(died: asyncio.Event) -> Disturbance:
    """Its first write is done, and nobody hears of it."""

    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if request.method != "GET" and "events" not in request.path:
            died.set()
            await asyncio.Event().wait()
        return response

    return disturb


# Killed, late, cut


@pytest.mark.parametrize("management", ["OrderedReady", "Parallel"])
@virtual_time
async def test_killed_after_any_write_it_makes_every_pod_once(management: str) -> None:
    async with a_world() as (world, server):
        asked = stateful_set(
            "web",
            3,
            volumeClaimTemplates=[claim("data")],
            podManagementPolicy=management,
            **policy(deleted="Delete", scaled="Delete"),
        )
        await world.create(STS, asked)
        killed, made = 0, Counter[str]()
        while world.status(STS, "web").get("availableReplicas") != 3:
            died = asyncio.Event()
            async with controlling(server, dying(died)):
                await asyncio.wait_for(died.wait(), 60)
            killed += 1
            await world.settle()
            made.update(set(uids(world).values()) - set(made))
        assert killed > 6, "every write has to have been the last of somebody"
        assert len(made) == 3, "no pod was made that was not needed"
        assert len(world.all(CONTROLLER_REVISIONS)) == 1
        assert [each["metadata"]["name"] for each in world.all(CLAIMS)] == [
            "data-web-0",
            "data-web-1",
            "data-web-2",
        ]


@virtual_time
async def test_killed_after_any_write_of_an_update_it_replaces_every_pod_once() -> None:
    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 3))
        async with controlling(server):
            await until_calm(world, 3)
        before = uids(world)
        await change(world, "2")
        replaced: set[str] = set()
        for _ in range(100):
            died = asyncio.Event()
            async with controlling(server, dying(died)):
                if not await wait_until_set(died, seconds=10):
                    break
            await world.settle()
            replaced |= set(uids(world).values()) - set(before.values())
        await until_updated(world, 3)
        assert len(replaced) == 3
        assert len(world.all(CONTROLLER_REVISIONS)) == 2


@pytest.mark.parametrize(
    "resource", ["pods", "statefulsets", "persistentvolumeclaims", "controllerrevisions"]
)
@pytest.mark.parametrize("management", ["OrderedReady", "Parallel"])
@virtual_time
async def test_behind_its_cache_it_does_nothing_twice(resource: str, management: str) -> None:
    counting = Counting(late_watch(f"/{resource}"))
    async with a_world() as (world, server):
        asked = stateful_set(
            "web",
            4,
            podManagementPolicy=management,
            volumeClaimTemplates=[claim("data")],
            **policy(deleted="Delete"),
        )
        await world.create(STS, asked)
        async with controlling(server, counting) as controller:
            await _reach(world, controller, 4)
            await change(world, "2")
            await _reach(world, controller, 4, is_updated=True)
            await world.scale(STS, "web", 1)
            await _reach(world, controller, 1)
        told = world.events("SuccessfulDelete")
    assert counting.count("POST pods") == 8
    assert counting.count("POST persistentvolumeclaims") == 4
    assert counting.count("POST controllerrevisions") == 2
    assert counting.count("DELETE pods/.*") == 7
    assert sum(event.get("count") or 1 for event in told) == 7, "each was told of once"


async def _reach(
    world: World, controller: StatefulSetController, replicas: int, *, is_updated: bool = False
) -> None:
    """Wake it again and again, long before its caches have what it wrote."""
    generation = await world.until("it is there", lambda: world.get(STS, "web")["metadata"]["generation"])
    for _ in range(3000):
        status = world.status(STS, "web")
        if (
            status.get("observedGeneration") == generation
            and status["replicas"] == status.get("availableReplicas", 0) == replicas
            and (not is_updated or status.get("updatedReplicas") == replicas)
        ):
            return
        controller.queue.add(KEY)
        await asyncio.sleep(0.1)
    raise AssertionError(world.describe())


@virtual_time
async def test_while_pods_are_not_followed_nothing_is_done() -> None:
    is_cut = False

    cut = cut_off(lambda: is_cut, lambda request: request.method == "GET" and request.path.endswith("/pods"))
    counting = Counting(cut)

    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 2))
        async with controlling(server, counting):
            await until_calm(world, 2)
            await world.settle()
            is_cut = True
            # This one the watch still brings to its end, and then there is none.
            await world.relabel(world.pods()[0], {"note": "last"})
            await asyncio.sleep(5)
            counting.writes.clear()
            await world.lose(world.pods()[1])
            await world.scale(STS, "web", 5)
            await asyncio.sleep(30)
            assert counting.writes == []
            is_cut = False
            await until_calm(world, 5)
        assert counting.count("POST pods") == 4


# Owners that were replaced


@virtual_time
async def test_what_was_expected_of_a_set_is_not_expected_of_the_next_of_its_name() -> None:
    """The set is replaced while it deletes a pod; news of the pod come later, and are of the old set's."""
    async with a_world() as (world, server):

        async def replace_the_set(request: Request, to_server: Handler) -> Response:
            response = await late_watch("/pods")(request, to_server)
            if request.method == "DELETE" and request.path.endswith("/pods/web-1"):
                await world.delete(STS, "web")
                await world.create(STS, stateful_set("web", 1))
                await asyncio.sleep(1)
            return response

        await world.create(STS, stateful_set("web", 2))
        async with controlling(server, replace_the_set):
            await until_calm(world, 2)
            old = world.get(STS, "web")["metadata"]["uid"]
            await world.scale(STS, "web", 1)
            await world.until("it is another", lambda: world.get(STS, "web")["metadata"]["uid"] != old)
            await world.until_pods(1)
            await world.lose(world.living()[0])
            await until_calm(world, 1)


@virtual_time
async def test_a_pod_that_is_replaced_before_it_is_deleted_lives() -> None:
    """The delete names the UID it means: whoever has the name by then is not touched."""
    async with a_world() as (world, server):

        async def replace_first(request: Request, to_server: Handler) -> Response:
            if request.method == "DELETE" and request.path.endswith("/pods/web-1") and not replaced:
                replaced.append("")
                await world.client.delete(
                    PODS, "web-1", "default", options=DeleteOptions(grace_period_seconds=0)
                )
                made = await world.create(PODS, labelled_pod("web-1", "somebody-elses"))
                replaced[0] = made["metadata"]["uid"]
            return await to_server(request)

        replaced: list[str] = []
        await world.create(STS, stateful_set("web", 2))
        async with controlling(server, replace_first):
            await until_calm(world, 2)
            await world.scale(STS, "web", 1)
            await until_calm(world, 1)
            await world.settle()
        assert uids(world)["web-1"] == replaced[0]


# Claims


@virtual_time
async def test_a_claim_that_is_refused_keeps_its_pod_from_being_made_and_is_told() -> None:
    async def refuse(request: Request, to_server: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/persistentvolumeclaims"):
            return refusal(403, "Forbidden")
        return await to_server(request)

    counting = Counting(refuse)
    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 1, volumeClaimTemplates=[claim("data")]))
        async with controlling(server, counting):
            await asyncio.sleep(60)
            assert world.pods() == []
            told = {event["message"] for event in world.events("FailedCreate")}
        # From 5 ms the distance doubles.
        assert 5 <= counting.count("POST persistentvolumeclaims") <= 16
        assert told == {
            "Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: no: 403",
            "Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: no: 403",
        }


@virtual_time
async def test_a_claim_that_is_going_keeps_its_pod_from_being_made() -> None:
    async with a_world() as (world, server):
        await world.create(CLAIMS, claim("data-web-0", finalizers=["test.podlife.io/held"]))
        await world.delete(CLAIMS, "data-web-0")
        await world.create(STS, stateful_set("web", 1, volumeClaimTemplates=[claim("data")]))
        async with controlling(server):
            await world.until_event("FailedCreate")
            assert world.pods() == []
            await world.patch(CLAIMS, "data-web-0", {"metadata": {"finalizers": None}})
            await until_calm(world, 1)
        (event,) = world.events("FailedCreate")
        assert event["message"] == (
            "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
        )


@virtual_time
async def test_an_adopted_pod_without_its_volumes_is_told_of_and_left() -> None:
    """No server lets them be changed: the refusal is told, ever more slowly."""
    counting = Counting()
    async with a_world() as (world, server):
        await world.create(PODS, labelled_pod("web-0"))
        on_delete = {"updateStrategy": {"type": "OnDelete"}}
        await world.create(STS, stateful_set("web", 1, volumeClaimTemplates=[claim("data")], **on_delete))
        async with controlling(server, counting):
            await asyncio.sleep(60)
        (message,) = {event["message"] for event in world.events("FailedUpdate")}
        assert message.startswith('Update Pod web-0 in StatefulSet web failed error: Pod "web-0" is invalid')
        assert counting.count("PATCH pods/web-0") <= 20
        assert list(uids(world)) == ["web-0"]


# Refusals and input that cannot work


@virtual_time
async def test_a_quota_that_refuses_is_told_and_tried_again_ever_more_slowly() -> None:
    is_full = True

    async def quota(request: Request, to_server: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/pods") and is_full:
            return refusal(403, "Forbidden")
        return await to_server(request)

    counting = Counting(quota)
    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 50, podManagementPolicy="Parallel"))
        async with controlling(server, counting):
            await asyncio.sleep(60)
            # One pod of fifty is tried each time.
            assert 5 <= counting.count("POST pods") <= 16
            (event,) = world.events("FailedCreate")
            assert event["message"] == "Create Pod web-0 in StatefulSet web failed error: no: 403"
            is_full = False
            await world.until_status(STS, "web", availableReplicas=50)
        assert len(world.pods()) == 50


@virtual_time
async def test_in_a_namespace_that_is_going_nothing_is_told_and_nothing_tried_again() -> None:
    def going(what: str) -> Response:
        causes = [{"reason": "NamespaceTerminating", "message": "no", "field": "metadata.namespace"}]
        return refusal(403, "Forbidden", details={"kind": what, "causes": causes})

    async def terminating(request: Request, to_server: Handler) -> Response:
        for what in ("pods", "persistentvolumeclaims"):
            if request.method == "POST" and request.path.endswith(f"/{what}"):
                return going(what)
        return await to_server(request)

    counting = Counting(terminating)
    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 2))
        other = stateful_set("claiming", 2, volumeClaimTemplates=[claim("data")])
        await world.create(STS, other)
        async with controlling(server, counting):
            await asyncio.sleep(3600)
        assert world.events("FailedCreate") == []
        # Once, and once more for the status that was written then.
        assert counting.count("POST pods") <= 2
        assert counting.count("POST persistentvolumeclaims") <= 2


@pytest.mark.parametrize(
    ("selector", "most_writes", "complaint"),
    [
        (b'"matchLabels":{"app":"bad"}', 9, "selector 'app=bad' does not match template labels 'app=web'"),
        (
            b'"matchExpressions":[{"key":"app","operator":"Eh"}]',
            0,
            "the selector of StatefulSet default/web cannot be used",
        ),
    ],
    ids=["of other pods", "unreadable"],
)
@virtual_time
async def test_a_selector_that_cannot_work_is_an_error_in_one_line(
    selector: bytes, most_writes: int, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No server of today lets it be; what cannot work is not tried again and again."""

    async def misread(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        async with aclosing(body):
            async for piece in body:
                yield piece.replace(b'"matchLabels":{"app":"web"}', selector)

    counting = Counting(watching("/statefulsets", misread))
    async with a_world() as (world, server):
        async with controlling(server, counting):
            await asyncio.sleep(1)
            await world.create(STS, stateful_set("web", 2))
            await asyncio.sleep(600)
        assert counting.count("POST pods") == 0
        assert len(counting.writes) <= most_writes
    errors = [record.getMessage() for record in caplog.records if "failed permanently" in record.getMessage()]
    assert errors
    assert all(complaint in each for each in errors)


# What users see


@virtual_time
async def test_a_pod_that_waits_for_a_node_is_replaced_at_once_when_the_template_changes_again() -> None:
    """Nothing is known of it that would be worth waiting for, once somebody has deleted it."""
    async with a_world(PENDING) as (world, server):
        await world.create(STS, stateful_set("web", 2))
        async with controlling(server):
            await world.until_status(STS, "web", replicas=1)
            await change(world, "2")
            await world.until_status(STS, "web", replicas=1, updatedReplicas=0)
            world.node.let(RUNS)
            await until_updated(world, 2)
        assert len(world.all(CONTROLLER_REVISIONS)) == 2


@virtual_time
async def test_minutes_of_min_ready_seconds_pass_without_a_look() -> None:
    counting = Counting()
    async with a_world() as (world, server):
        await world.create(STS, stateful_set("web", 2, minReadySeconds=300))
        async with controlling(server, counting) as controller:
            await world.until_status(STS, "web", readyReplicas=1)
            await world.settle()
            looks = sum(controller.controller.metrics.results.values())
            await asyncio.sleep(200)
            assert sum(controller.controller.metrics.results.values()) == looks
            await world.until(
                "both are available", lambda: world.status(STS, "web")["availableReplicas"] == 2, seconds=900
            )
