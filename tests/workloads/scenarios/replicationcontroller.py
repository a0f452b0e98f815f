"""ReplicationControllers: as ReplicaSets, by the same controller, with a map as their selector."""

from __future__ import annotations

from podlife.client import CONFIG_MAPS, PODS, REPLICATION_CONTROLLERS
from tests.workloads.node import PENDING, UNREADY, exits, named
from tests.workloads.objects import Object, labelled_pod, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

RC = REPLICATION_CONTROLLERS


def replication_controller(replicas: int, **spec: object) -> Object:
    fields = {"replicas": replicas, "selector": {"app": "web"}, "template": template("web"), **spec}
    return {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": fields}


async def start(world: World, replicas: int, **spec: object) -> None:
    await world.create(RC, replication_controller(replicas, **spec))
    await world.until_status(RC, "web", replicas=replicas, availableReplicas=replicas)


@scenario("replicationcontroller")
async def scale_up_and_down(world: World) -> None:
    await start(world, 2)
    await world.scale(RC, "web", 5)
    await world.until_status(RC, "web", availableReplicas=5)
    await world.scale(RC, "web", 1)
    await world.until_pods(1)
    await world.until_status(RC, "web", replicas=1, availableReplicas=1)


@scenario("replicationcontroller")
async def selector_of_its_template(world: World) -> None:
    await start(world, 2, selector=None)


@scenario("replicationcontroller")
async def pod_lost(world: World) -> None:
    await start(world, 3)
    await world.lose(world.pods()[0])
    await world.until_pods(3)
    await world.until_status(RC, "web", replicas=3, availableReplicas=3)


@scenario("replicationcontroller")
async def pod_fails(world: World) -> None:
    await start(world, 2)
    world.node.let(exits(3), named(world.pods()[0]["metadata"]["name"]))
    await world.until("another was made", lambda: len(world.pods()) == 3)
    await world.until_status(RC, "web", replicas=2, availableReplicas=2)


@scenario("replicationcontroller")
async def pods_adopted(world: World) -> None:
    await world.create(PODS, labelled_pod("found"))
    await world.create(PODS, labelled_pod("stranger", "other"))
    await start(world, 2)


@scenario("replicationcontroller")
async def pod_released(world: World) -> None:
    await start(world, 2)
    await world.relabel(world.pods()[0], {"app": "debug"})
    await world.until_pods(3)
    await world.until_status(RC, "web", replicas=2, availableReplicas=2)


@scenario("replicationcontroller")
async def template_changed(world: World) -> None:
    await start(world, 2)
    changed = template("web", "registry.example/main:2")
    changed["metadata"]["labels"]["tier"] = "front"
    await world.patch(RC, "web", {"spec": {"template": changed}})
    await world.until_status(RC, "web", fullyLabeledReplicas=0)


@scenario("replicationcontroller")
async def deleted_in_the_background(world: World) -> None:
    await start(world, 2)
    await world.delete(RC, "web", cascade="Background")
    await world.until("all pods are gone", lambda: not world.pods())


@scenario("replicationcontroller")
async def deleted_in_the_foreground(world: World) -> None:
    await start(world, 2)
    await world.delete(RC, "web", cascade="Foreground")
    await world.until_gone(RC, "web")


@scenario("replicationcontroller")
async def deleted_without_its_pods(world: World) -> None:
    await start(world, 2)
    await world.delete(RC, "web", cascade="Orphan")
    await world.until_gone(RC, "web")


@scenario("replicationcontroller")
async def quota_refuses(world: World) -> None:
    await world.refuse_pods(2)
    await world.create(RC, replication_controller(4))
    await world.until_status(RC, "web", availableReplicas=2)
    await world.until("it says so", lambda: world.status(RC, "web").get("conditions"))


@scenario("replicationcontroller")
async def no_replicas_wanted(world: World) -> None:
    await world.create(RC, replication_controller(0))
    await world.until_status(RC, "web", replicas=0)


@scenario("replicationcontroller")
async def pods_that_never_start(world: World) -> None:
    world.node.let(PENDING)
    await world.create(RC, replication_controller(3))
    await world.until_status(RC, "web", replicas=3, fullyLabeledReplicas=3, readyReplicas=0)


@scenario("replicationcontroller")
async def pods_that_are_not_ready(world: World) -> None:
    world.node.let(UNREADY)
    await world.create(RC, replication_controller(2))
    await world.until_status(RC, "web", replicas=2, readyReplicas=0)


@scenario("replicationcontroller")
async def available_after_a_while(world: World) -> None:
    await start(world, 2, minReadySeconds=2)


@scenario("replicationcontroller")
async def not_available_yet(world: World) -> None:
    await world.create(RC, replication_controller(2, minReadySeconds=100_000))
    await world.until_status(RC, "web", readyReplicas=2, availableReplicas=0)


@scenario("replicationcontroller")
async def pod_succeeds(world: World) -> None:
    """A pod that has ended is replaced, however it ended."""
    await start(world, 1)
    world.node.let(exits(0), named(world.pods()[0]["metadata"]["name"]))
    await world.until("another was made", lambda: len(world.pods()) == 2)
    await world.until_status(RC, "web", replicas=1, availableReplicas=1)


@scenario("replicationcontroller")
async def scaled_to_zero(world: World) -> None:
    await start(world, 3)
    await world.scale(RC, "web", 0)
    await world.until("all pods are gone", lambda: not world.pods())
    await world.until_status(RC, "web", replicas=0)


@scenario("replicationcontroller")
async def terminating_pod_replaced(world: World) -> None:
    await start(world, 2)
    world.node.hold()
    await world.delete(PODS, world.pods()[0]["metadata"]["name"])
    await world.until("another was made", lambda: len(world.pods()) == 3)
    await world.until_status(RC, "web", replicas=2, availableReplicas=2)


@scenario("replicationcontroller")
async def pod_of_another_owner(world: World) -> None:
    owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "other"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "controller": True}
    reference["uid"] = owner["metadata"]["uid"]
    await world.create(PODS, labelled_pod("foreign", ownerReferences=[reference]))
    await start(world, 2)
    await world.until_pods(3)


@scenario("replicationcontroller")
async def quota_is_lifted(world: World) -> None:
    await world.refuse_pods(1)
    await world.create(RC, replication_controller(2))
    await world.until("it says so", lambda: world.status(RC, "web").get("conditions"))
    await world.allow_pods()
    await world.until_status(RC, "web", replicas=2, availableReplicas=2)


@scenario("replicationcontroller")
async def namespace_is_terminating(world: World) -> None:
    await start(world, 1)
    await world.terminate_namespace()
    await world.lose(world.pods()[0])
    await world.until_status(RC, "web", replicas=0)
