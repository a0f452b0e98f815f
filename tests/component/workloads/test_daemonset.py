"""DaemonSets when things go wrong: on the embedded server, under virtual time, with a client as bad as need be.

What is looked at is the server: which pods there are, on which nodes, whose they are, what the events say."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from podlife.client import CONTROLLER_REVISIONS, DAEMON_SETS, NAMESPACES, PODS
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.controller_revisions import revision_hash, template_patch
from podlife.workloads.daemonset import DaemonSetController
from tests.kit.embedded import Disturbance, connect, start, stream_of
from tests.workloads.disturbances import cut_off, late_watch
from tests.workloads.node import RUNS, exits
from tests.workloads.runs import EmbeddedQuota, at_work, observing
from tests.workloads.scenarios.daemonset import (
    AGENT,
    IN_PLACE,
    change_image,
    daemon,
    node,
    running,
    serves,
)
from tests.workloads.world import World

DS = DAEMON_SETS
NAMESPACE = "fleet"
KEY = (NAMESPACE, AGENT)


class Stage:
    """A world without controllers; `keeping` has one at work for a while."""

    def __init__(self, server: Handler) -> None:
        self.server = server

    @asynccontextmanager
    async def keeping(
        self, disturb: Disturbance | None = None, **options: Any
    ) -> AsyncIterator[DaemonSetController]:
        async with connect(self.server, disturb) as client:
            plane = ControlPlane(client, clock=LoopClock())
            controller = DaemonSetController(plane, **options)
            plane.add(controller)
            async with at_work(plane.run):
                yield controller


@asynccontextmanager
async def staged() -> AsyncIterator[tuple[Stage, World]]:
    server = await start()
    async with (
        connect(server) as client,
        observing(client, EmbeddedQuota(), clock=LoopClock(), quiet_seconds=5) as cluster,
    ):
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        world = World(cluster, NAMESPACE)
        async with at_work(world.node.run):
            yield Stage(server), world


def per_node(world: World) -> Counter[str]:
    """How many pods each node has, or is to have."""
    return Counter(_target(pod) for pod in world.pods())


def _target(pod: Any) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    name: str = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
    return name


async def pods_on_server(world: World) -> list[Any]:
    return list((await world.client.list(PODS, NAMESPACE)).items)


async def nodes(world: World, count: int) -> None:
    for number in range(count):
        await node(world, f"n{number}")


# Duplicates


@virtual_time
async def test_controller_that_is_killed_at_any_step_makes_no_duplicates() -> None:
    async with staged() as (stage, world):
        await nodes(world, 8)
        await world.create(DS, daemon(world))
        for turns in range(0, 200, 3):
            async with stage.keeping():
                for _ in range(turns):
                    await asyncio.sleep(0)
            assert set(Counter(map(_target, await pods_on_server(world))).values()) <= {1}
        async with stage.keeping() as controller:
            await serves(world, 8)
            assert controller.queue.depth == 0
    assert len(world.all(CONTROLLER_REVISIONS)) == 1


@virtual_time
async def test_controller_that_is_killed_during_an_update_keeps_its_bounds_and_ends_it() -> None:
    async with staged() as (stage, world):
        async with stage.keeping():
            await running(world, 6, updateStrategy=IN_PLACE)
        await change_image(world, "registry.example/main:2")
        for turns in range(0, 300, 11):
            async with stage.keeping():
                for _ in range(turns):
                    await asyncio.sleep(0)
            ready = [pod for pod in await pods_on_server(world) if is_ready(pod)]
            assert len(ready) >= 5
        async with stage.keeping():
            await serves(world, 6)
    assert len(world.all(CONTROLLER_REVISIONS)) == 2


def is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return "deletionTimestamp" not in pod["metadata"] and any(
        each["type"] == "Ready" and each["status"] == "True" for each in conditions
    )


@pytest.mark.parametrize("resource", ["pods", "daemonsets", "controllerrevisions", "nodes"])
@virtual_time
async def test_cache_that_is_behind_never_makes_it_create_twice(resource: str) -> None:
    async with staged() as (stage, world):
        await nodes(world, 5)
        async with stage.keeping(late_watch(resource)) as controller:
            await asyncio.sleep(30)
            await world.create(DS, daemon(world))
            most = 0
            for _ in range(300):
                # Woken again and again, long before the cache has what was done.
                controller.queue.add(KEY)
                await asyncio.sleep(0.1)
                most = max(most, len(await pods_on_server(world)))
            await serves(world, 5)
        assert most == 5
        assert len(world.all(CONTROLLER_REVISIONS)) == 1


@virtual_time
async def test_pods_that_come_while_it_writes_its_history_are_not_made_again() -> None:
    async def slow(request: Request, to_server: Handler) -> Response:
        if request.method == "POST" and request.path.endswith("/controllerrevisions"):
            await asyncio.sleep(10)
        return await late_watch("pods")(request, to_server)

    async with staged() as (stage, world):
        await nodes(world, 4)
        async with stage.keeping(slow):
            await asyncio.sleep(30)
            await world.create(DS, daemon(world, updateStrategy={"type": "OnDelete"}))
            await world.until_pods(4)
            # The next revision is made before the cache has the pods, and they come while it is.
            await change_image(world, "registry.example/main:2")
            most = 0
            for _ in range(60):
                await asyncio.sleep(1)
                most = max(most, len(await pods_on_server(world)))
            assert most == 4
            await world.until_status(DS, AGENT, numberAvailable=4)


@virtual_time
async def test_nothing_is_decided_while_the_server_is_not_followed() -> None:
    is_cut = False

    cut = cut_off(lambda: is_cut, lambda request: request.method == "GET")

    async with staged() as (stage, world), stage.keeping(cut) as controller:
        pods = await running(world, 3)
        is_cut = True
        # Of which only the end of the watches is seen.
        await world.lose(pods[0])
        await node(world, "late")
        for _ in range(60):
            controller.queue.add(KEY)
            await asyncio.sleep(10)
        assert len(await pods_on_server(world)) == 2, "expectations that time out are no reason either"
        is_cut = False
        await serves(world, 4)
    assert set(per_node(world).values()) == {1}


@virtual_time
async def test_expectations_of_a_daemon_set_are_not_its_successors() -> None:
    async with staged() as (stage, world):
        await nodes(world, 3)
        async with stage.keeping(late_watch("pods", 20)):
            await asyncio.sleep(60)
            await world.create(DS, daemon(world))
            await world.until_pods(3)
            # Its pods are still expected when it is gone.
            await world.delete(DS, AGENT)
            await world.create(DS, daemon(world))
            await world.until("the successor has pods", lambda: len(world.living()) == 6)


# Failed pods


@virtual_time
async def test_pods_that_fail_at_once_are_replaced_ever_more_slowly() -> None:
    async with staged() as (stage, world):
        world.node.let(exits(1))
        await node(world, "a")
        async with stage.keeping():
            await world.create(DS, daemon(world))
            await asyncio.sleep(3600)
            told = sum(event.get("count", 1) for event in world.events("FailedDaemonPod"))
            # 1 + 2 + 4 + … + 512 + 900 + 900 seconds; the first of a generation that was not observed yet is free.
            assert 11 <= told <= 14
            failed = {pod["metadata"]["name"] for pod in world.pods()}
            world.node.let(RUNS, lambda pod: pod["metadata"]["name"] not in failed)
            await asyncio.sleep(1000)
            await serves(world, 1)


# History


@virtual_time
async def test_name_that_is_taken_by_another_template_is_counted_as_a_collision() -> None:
    async with staged() as (stage, world):
        await node(world, "a")
        made = await world.create(DS, daemon(world))
        hash_ = revision_hash(template_patch(made["spec"]["template"]), 0)
        taken = {"metadata": {"name": f"{AGENT}-{hash_}"}, "data": {"spec": {}}, "revision": 1}
        await world.create(CONTROLLER_REVISIONS, taken)
        async with stage.keeping():
            await serves(world, 1)
        assert world.status(DS, AGENT)["collisionCount"] == 1
        (pod,) = world.pods()
        assert pod["metadata"]["labels"]["controller-revision-hash"] not in ("", hash_)
        assert len(world.all(CONTROLLER_REVISIONS)) == 2


@virtual_time
async def test_revisions_that_say_the_same_are_merged_and_no_pod_is_replaced() -> None:
    async with staged() as (stage, world):
        async with stage.keeping():
            await running(world, 2)
        (revision,) = world.all(CONTROLLER_REVISIONS)
        before = {pod["metadata"]["uid"] for pod in world.pods()}
        labels = {**revision["metadata"]["labels"], "controller-revision-hash": "twin"}
        owners = revision["metadata"]["ownerReferences"]
        metadata = {"name": f"{AGENT}-twin", "labels": labels, "ownerReferences": owners}
        await world.create(
            CONTROLLER_REVISIONS, {"metadata": metadata, "data": revision["data"], "revision": 5}
        )
        async with stage.keeping():
            await world.until_gone(CONTROLLER_REVISIONS, revision["metadata"]["name"])
            await serves(world, 2)
        assert {pod["metadata"]["uid"] for pod in world.pods()} == before
        assert {pod["metadata"]["labels"]["controller-revision-hash"] for pod in world.pods()} == {"twin"}


@virtual_time
async def test_history_of_kube_controller_manager_is_taken_over_without_a_rollout() -> None:
    async with staged() as (stage, world):
        async with stage.keeping():
            await running(world, 2)
        (revision,) = world.all(CONTROLLER_REVISIONS)
        before = {pod["metadata"]["uid"] for pod in world.pods()}
        # As an older one has named it and labelled its pods, and without a label on the revision at all.
        data = json.loads(json.dumps(revision["data"]))
        data["spec"]["template"]["metadata"]["creationTimestamp"] = None
        metadata = {
            "name": f"{AGENT}-6d9f7c5b8",
            "labels": {"app": AGENT},
            "ownerReferences": revision["metadata"]["ownerReferences"],
        }
        await world.create(CONTROLLER_REVISIONS, {"metadata": metadata, "data": data, "revision": 1})
        await world.delete(CONTROLLER_REVISIONS, revision["metadata"]["name"])
        for pod in world.pods():
            await world.relabel(pod, {"controller-revision-hash": f"{AGENT}-6d9f7c5b8"})
        async with stage.keeping():
            await asyncio.sleep(60)
            await serves(world, 2)
        (kept,) = world.all(CONTROLLER_REVISIONS)
        assert kept["metadata"]["labels"]["controller-revision-hash"] == f"{AGENT}-6d9f7c5b8"
        assert {pod["metadata"]["uid"] for pod in world.pods()} == before


# Refusals and bad input


def rewriting(old: bytes, new: bytes) -> Disturbance:
    """A server that checks less than ours: what is read of DaemonSets is not what was written."""

    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if request.method == "GET" and request.path.endswith("/daemonsets"):
            if "watch" in request.query:
                response.body = rewritten(stream_of(response))
            else:
                assert not isinstance(response.body, AsyncIterator)
                pieces = [response.body] if isinstance(response.body, bytes) else response.body
                response.body = b"".join(pieces).replace(old, new)
        return response

    async def rewritten(body: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        async with aclosing(body):
            async for piece in body:
                yield piece.replace(old, new)

    return disturb


SELECTOR = b'"selector":{"matchLabels":{"app":"agent"}}'


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        (
            b'"selector":{"matchLabels":{"app":"other"}}',
            "selector 'app=other' does not match template labels",
        ),
        (
            b'"selector":{"matchExpressions":[{"key":"app","operator":"Like"}]}',
            'the selector of DaemonSet fleet/agent cannot be: "Like" is not a valid label selector operator',
        ),
        (b'"unselected":{}', "selector '' does not match template labels"),
    ],
)
@virtual_time
async def test_selector_that_cannot_work_is_one_clear_line_and_makes_no_pod(
    selector: bytes, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged() as (stage, world):
        await node(world, "a")
        async with stage.keeping(rewriting(SELECTOR, selector)) as controller:
            await world.create(DS, daemon(world))
            await asyncio.sleep(60)
            assert controller.controller.metrics.results == {"terminal_error": 1}
        assert not world.pods()
        lines = [
            record.getMessage() for record in caplog.records if "failed permanently" in record.getMessage()
        ]
        assert len(lines) == 1
        assert complaint in lines[0]
        assert "\n" not in lines[0]


@virtual_time
async def test_selector_of_everything_is_refused_with_an_event() -> None:
    async with staged() as (stage, world):
        await node(world, "a")
        async with stage.keeping(rewriting(SELECTOR, b'"selector":{}')):
            await world.create(DS, daemon(world))
            await world.until_event("SelectingAll")
            await asyncio.sleep(10)
        assert not world.pods()
