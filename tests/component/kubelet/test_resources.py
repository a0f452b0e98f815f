"""What a container status says of resources, and how a pod is resized."""

from __future__ import annotations

import asyncio
from typing import Any

from podlife.client import NODES, PODS, PatchType
from podlife.kubelet.pod_fields import condition_of
from podlife.kubelet.runtime import Resources
from podlife.kubelet.runtimes.sim import Behaviour
from tests.component.kubelet.node_world import NodeWorld, on_a_node, pod
from tests.kit.objects import container

Object = dict[str, Any]
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
LARGE = {"requests": {"cpu": "150m", "memory": "64Mi"}, "limits": {"cpu": "300m", "memory": "128Mi"}}


def shown(each: Object, name: str = "main") -> Object:
    return next((one for one in each["status"].get("containerStatuses") or () if one["name"] == name), {})


async def resize(world: NodeWorld, resources: Object) -> None:
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    await world.client.patch(PODS, "web", patch, "default", type=PatchType.STRATEGIC, subresource="resize")


@on_a_node
async def test_a_container_shows_the_resources_that_it_was_started_with(world: NodeWorld) -> None:
    first = container("first", resources=SMALL)
    world.behaviours["first"] = Behaviour(run_seconds=1)
    await world.create(
        pod(containers=[container(resources=SMALL), container("plain")], initContainers=[first])
    )
    running = await world.until_phase("Running")
    assert shown(running)["resources"] == SMALL
    assert shown(running)["allocatedResources"] == SMALL["requests"]
    assert shown(running, "plain").get("resources") == {}
    assert "allocatedResources" not in shown(running, "plain")
    assert running["status"]["initContainerStatuses"][0]["resources"] == SMALL


@on_a_node
async def test_a_container_shows_no_resources_before_the_runtime_has_it(world: NodeWorld) -> None:
    world.machine.image_errors["registry.example/app:1"] = "no such image"
    await world.create(pod(containers=[container(resources=SMALL)]))
    waiting = await world.until(lambda each: bool(shown(each)))
    assert "resources" not in shown(waiting)


async def until_resized(world: NodeWorld, resources: Object, name: str = "web") -> Object:
    def is_resized(each: Object) -> bool:
        return shown(each).get("resources") == resources and not resize_conditions(each)

    return await world.until(is_resized, name)


async def allocatable_cores(world: NodeWorld) -> int:
    await world.running(pod("first", containers=[container()]))
    [node] = (await world.client.list_all(NODES)).items
    return int(node["status"]["allocatable"]["cpu"])


def resize_conditions(each: Object) -> list[Object]:
    found = (condition_of(each["status"], kind) for kind in ("PodResizePending", "PodResizeInProgress"))
    return [dict(one) for one in found if one is not None]


@on_a_node
async def test_a_resize_is_made_in_place(world: NodeWorld) -> None:
    await world.running(pod(containers=[container(resources=SMALL)]))
    await resize(world, LARGE)
    resized = await until_resized(world, LARGE)
    assert shown(resized)["allocatedResources"] == LARGE["requests"]
    assert shown(resized)["restartCount"] == 0
    [running] = world.machine.containers.values()
    assert running.config.resources == Resources(150, 300, 128 << 20, None, 64 << 20)
    told = [(reason, text) for reason, text, _ in await world.events() if reason.startswith("Resize")]
    after = (
        '{"containers":[{"name":"main","resources":{"limits":{"cpu":"300m","memory":"128Mi"},'
        '"requests":{"cpu":"150m","memory":"64Mi"}}}],"generation":2}'
    )
    assert told == [
        ("ResizeStarted", f"Pod resize started: {after}"),
        ("ResizeCompleted", f"Pod resize completed: {after}"),
    ]


@on_a_node
async def test_a_container_restarts_if_its_resize_policy_says_so(world: NodeWorld) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    await world.running(pod(containers=[container(resources=SMALL, resizePolicy=policy), container("other")]))
    await resize(world, LARGE)
    resized = await until_resized(world, LARGE)
    assert (shown(resized)["restartCount"], shown(resized, "other")["restartCount"]) == (1, 0)
    assert ("Killing", "Container main resize requires restart") in [
        (reason, text) for reason, text, _ in await world.events()
    ]
    # Memory is changed in place.
    await resize(world, {**LARGE, "limits": {"cpu": "300m", "memory": "256Mi"}})
    resized = await until_resized(world, {**LARGE, "limits": {"cpu": "300m", "memory": "256Mi"}})
    assert shown(resized)["restartCount"] == 1


@on_a_node
async def test_a_resize_that_does_not_fit_is_deferred_until_resources_are_free(world: NodeWorld) -> None:
    cores = await allocatable_cores(world)
    half = {"requests": {"cpu": f"{cores * 500}m"}}
    await world.running(pod(containers=[container(resources=half)]))
    await world.running(pod("other", containers=[container(resources=half)]))
    grown = {"requests": {"cpu": str(cores)}}
    await resize(world, grown)
    deferred = await world.until(lambda each: bool(resize_conditions(each)))
    [condition] = resize_conditions(deferred)
    message = (
        f"Node didn't have enough resource: cpu, requested: {cores * 1000}, used: {cores * 500}, "
        f"capacity: {cores * 1000}"
    )
    assert condition.items() >= {"reason": "Deferred", "message": message, "observedGeneration": 2}.items()
    assert "requests" in shown(deferred)["resources"] != grown
    [told] = [text for reason, text, _ in await world.events() if reason == "ResizeDeferred"]
    assert told.startswith("Pod resize OutOfcpu: {")
    assert told.endswith(f'"generation":2,"error":"{message}"}}')
    # An agent that was started again goes on.
    await world.kill()
    await world.begin()
    await world.delete("other", grace_seconds=0)
    await until_resized(world, grown)


@on_a_node
async def test_a_resize_that_is_taken_back_is_pending_no_more(world: NodeWorld) -> None:
    cores = await allocatable_cores(world)
    await world.running(pod(containers=[container(resources=SMALL)]))
    await world.running(pod("other", containers=[container(resources={"requests": {"cpu": "1"}})]))
    await resize(world, {"requests": {"cpu": str(cores)}, "limits": {"cpu": str(cores)}})
    await world.until(lambda each: bool(resize_conditions(each)))
    await resize(world, SMALL)
    await until_resized(world, SMALL)


@on_a_node
async def test_a_resize_while_the_agent_is_away_is_made_when_it_is_back(world: NodeWorld) -> None:
    await world.running(pod(containers=[container(resources=SMALL)]))
    await world.kill()
    await resize(world, LARGE)
    await world.begin()
    resized = await until_resized(world, LARGE)
    assert shown(resized)["restartCount"] == 0


@on_a_node
async def test_a_resize_that_the_runtime_refuses_is_shown_and_tried_again(world: NodeWorld) -> None:
    await world.running(pod(containers=[container(resources=SMALL)]))
    world.machine.resize_error = "no room"
    await resize(world, LARGE)
    failed = await world.until(lambda each: any(one.get("reason") for one in resize_conditions(each)))
    [condition] = resize_conditions(failed)
    assert (condition["reason"], condition["message"]) == ("Error", "no room")
    assert shown(failed)["resources"] == SMALL
    assert shown(failed)["allocatedResources"] == LARGE["requests"]
    world.machine.resize_error = ""
    await until_resized(world, LARGE)


@on_a_node
async def test_sidecars_and_init_containers_are_resized(world: NodeWorld) -> None:
    side = container("side", resources=SMALL, restartPolicy="Always")
    first = container("first", resources=SMALL)
    world.behaviours["first"] = Behaviour(run_seconds=50)
    await world.create(pod(initContainers=[side, first]))
    patch = {"spec": {"initContainers": [{"name": name, "resources": LARGE} for name in ("side", "first")]}}

    def is_initializing(each: Object) -> bool:
        found = each["status"].get("initContainerStatuses") or ()
        return len(found) == 2 and all("running" in one["state"] for one in found)

    await world.until(is_initializing)
    await world.client.patch(PODS, "web", patch, "default", type=PatchType.STRATEGIC, subresource="resize")
    resized = await world.until(
        lambda each: all(one["resources"] == LARGE for one in each["status"]["initContainerStatuses"])
    )
    assert resized["status"]["phase"] == "Pending"


@on_a_node
async def test_resources_of_a_whole_pod_are_resized(world: NodeWorld) -> None:
    await world.running(pod(resources={"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}))
    patch = {"spec": {"resources": {"limits": {"cpu": "300m"}}}}
    await world.client.patch(PODS, "web", patch, "default", type=PatchType.MERGE, subresource="resize")

    async def reasons() -> list[str]:
        return [reason for reason, *_ in await world.events() if reason.startswith("Resize")]

    async with asyncio.timeout(120):
        while await reasons() != ["ResizeStarted", "ResizeCompleted"]:
            await asyncio.sleep(0.05)
    assert resize_conditions(await world.get()) == []
