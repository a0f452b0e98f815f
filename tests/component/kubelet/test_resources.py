"""What a container status says of resources, and what becomes of a resize that this agent cannot make in place."""

from __future__ import annotations

from typing import Any

from podlife.client import PODS, PatchType
from podlife.kubelet.pod_fields import condition_of
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


@on_a_node
async def test_a_resize_is_shown_as_pending_until_the_container_is_started_again(world: NodeWorld) -> None:
    world.behaviours["main"] = Behaviour(run_seconds=100, exit_code=1)
    await world.running(pod(containers=[container(resources=SMALL)]))
    await resize(world, LARGE)
    pending = await world.until(lambda each: bool(condition_of(each["status"], "PodResizePending")))
    condition = condition_of(pending["status"], "PodResizePending") or {}
    assert (condition["status"], condition["reason"]) == ("True", "Infeasible")
    assert condition["message"] == (
        "in-place resize is not supported by this node: [main] will have its new resources when it is restarted"
    )
    assert condition["lastTransitionTime"]
    assert shown(pending)["resources"] == SMALL
    assert shown(pending)["allocatedResources"] == SMALL["requests"]
    # An agent that was started again knows it, too.
    await world.kill()
    await world.begin()
    restarted = await world.until(lambda each: shown(each).get("resources") == LARGE, seconds=200)
    assert shown(restarted)["restartCount"] == 1
    await world.until(lambda each: condition_of(each["status"], "PodResizePending") is None)


@on_a_node
async def test_a_resize_that_is_taken_back_is_pending_no_more(world: NodeWorld) -> None:
    await world.running(pod(containers=[container(resources=SMALL)]))
    await resize(world, LARGE)
    await world.until(lambda each: bool(condition_of(each["status"], "PodResizePending")))
    await resize(world, SMALL)
    await world.until(lambda each: condition_of(each["status"], "PodResizePending") is None)
