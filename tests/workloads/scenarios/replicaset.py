"""ReplicaSets: as many pods as are asked for, whatever becomes of them."""

from __future__ import annotations

from podlife.client import CONFIG_MAPS, PODS, REPLICA_SETS
from podlife.podcontrol.pod_order import POD_DELETION_COST
from tests.workloads.node import PENDING, RUNS, UNREADY, exits, fails, named
from tests.workloads.objects import labelled_pod, replica_set, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

RS = REPLICA_SETS


async def start(world: World, replicas: int, **spec: object) -> None:
    await world.create(RS, replica_set("web", replicas, **spec))
    await world.until_status(RS, "web", replicas=replicas, availableReplicas=replicas)


async def until_calm(world: World, replicas: int) -> None:
    """As many pods as are asked for, all at work, and nobody on the way out."""
    await world.until_status(RS, "web", replicas=replicas, availableReplicas=replicas, terminatingReplicas=0)


@scenario("replicaset")
async def scale_up(world: World) -> None:
    await start(world, 2)
    await world.scale(RS, "web", 5)
    await until_calm(world, 5)


@scenario("replicaset")
async def scale_down(world: World) -> None:
    await start(world, 5)
    await world.scale(RS, "web", 2)
    await until_calm(world, 2)


@scenario("replicaset")
async def scale_to_zero_and_back(world: World) -> None:
    await start(world, 3)
    await world.scale(RS, "web", 0)
    await until_calm(world, 0)
    await world.scale(RS, "web", 1)
    await until_calm(world, 1)


@scenario("replicaset")
async def scaled_up_while_pods_are_going(world: World) -> None:
    await start(world, 4)
    world.node.hold()
    await world.scale(RS, "web", 1)
    await world.until_status(RS, "web", replicas=1, terminatingReplicas=3)
    await world.scale(RS, "web", 3)
    await world.until_status(RS, "web", availableReplicas=3, terminatingReplicas=3)


@scenario("replicaset")
async def scale_down_takes_the_least_missed(world: World) -> None:
    """Without a node before pending, not ready before ready, the cheaper before the dearer."""
    world.node.let(PENDING, named("unscheduled"))
    world.node.let(UNREADY, named("unready"))
    for name in ("unscheduled", "unready", "cheap", "middling", "dear"):
        costs = {"cheap": "-10", "middling": "5", "dear": "100"}
        annotations = {POD_DELETION_COST: costs[name]} if name in costs else {}
        await world.create(PODS, labelled_pod(name, annotations=annotations))
    await world.create(RS, replica_set("web", 5))
    await world.until_status(RS, "web", replicas=5, availableReplicas=3)
    for replicas in (4, 3, 2, 1):
        await world.scale(RS, "web", replicas)
        await world.until_status(RS, "web", replicas=replicas, terminatingReplicas=0)
    await until_calm(world, 1)


@scenario("replicaset")
async def pod_lost(world: World) -> None:
    await start(world, 3)
    await world.lose(world.pods()[0])
    await until_calm(world, 3)


@scenario("replicaset")
async def pod_deleted_and_slow_to_go(world: World) -> None:
    await start(world, 2)
    world.node.hold()
    await world.delete(PODS, world.pods()[0]["metadata"]["name"])
    await world.until_status(RS, "web", availableReplicas=2, terminatingReplicas=1)


@scenario("replicaset")
async def pod_evicted(world: World) -> None:
    await start(world, 2)
    await world.evict(world.pods()[0])
    await world.until("a third pod was made", lambda: len(world.events("SuccessfulCreate")) == 3)
    await until_calm(world, 2)


@scenario("replicaset")
async def pods_fail(world: World) -> None:
    await start(world, 3)
    first, second = (pod["metadata"]["name"] for pod in world.pods()[:2])
    world.node.let(exits(3), named(first))
    world.node.let(fails(reason="Evicted", message="The node was low on resource: memory."), named(second))
    await world.until("two more were made", lambda: len(world.pods()) == 5)
    await until_calm(world, 3)


@scenario("replicaset")
async def pods_become_ready_and_not(world: World) -> None:
    world.node.let(UNREADY)
    await world.create(RS, replica_set("web", 3))
    await world.until_status(RS, "web", replicas=3)
    first, second = (pod["metadata"]["name"] for pod in world.pods()[:2])
    world.node.let(RUNS, named(first, second))
    await world.until_status(RS, "web", readyReplicas=2)
    world.node.let(UNREADY, named(first))
    await world.until_status(RS, "web", readyReplicas=1)


@scenario("replicaset")
async def available_after_min_ready_seconds(world: World) -> None:
    await world.create(RS, replica_set("web", 2, minReadySeconds=2))
    await world.until_status(RS, "web", readyReplicas=2, availableReplicas=0)
    await until_calm(world, 2)


@scenario("replicaset")
async def not_yet_available(world: World) -> None:
    await world.create(RS, replica_set("web", 2, minReadySeconds=3600))
    await world.until_status(RS, "web", readyReplicas=2, availableReplicas=0)


@scenario("replicaset")
async def pods_adopted(world: World) -> None:
    for name in ("found-a", "found-b"):
        await world.create(PODS, labelled_pod(name))
    await world.create(PODS, labelled_pod("stranger", "other"))
    await start(world, 3)


@scenario("replicaset")
async def pod_adopted_when_it_comes(world: World) -> None:
    await start(world, 1)
    await world.create(PODS, labelled_pod("late", annotations={POD_DELETION_COST: "-1"}))
    await world.until("it was one too many", lambda: world.events("SuccessfulDelete"))
    await until_calm(world, 1)


@scenario("replicaset")
async def pod_of_another_is_left_alone(world: World) -> None:
    made = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": made["metadata"]["uid"]}
    await world.create(PODS, labelled_pod("theirs", ownerReferences=[{**owner, "controller": True}]))
    await start(world, 2)


@scenario("replicaset")
async def pod_with_a_mere_owner_is_adopted(world: World) -> None:
    made = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": made["metadata"]["uid"]}
    await world.create(PODS, labelled_pod("shared", ownerReferences=[owner]))
    await start(world, 2)


@scenario("replicaset")
async def pod_released(world: World) -> None:
    await start(world, 2)
    await world.relabel(world.pods()[0], {"app": "debug"})
    await world.until_pods(3)
    await until_calm(world, 2)


@scenario("replicaset")
async def pod_released_and_taken_back(world: World) -> None:
    await start(world, 2)
    pod = world.pods()[0]
    await world.relabel(pod, {"app": None})
    await world.until_pods(3)
    await until_calm(world, 2)
    await world.relabel(pod, {"app": "web"})
    await world.until("it was one too many", lambda: world.events("SuccessfulDelete"))
    await until_calm(world, 2)


@scenario("replicaset")
async def two_that_select_the_same(world: World) -> None:
    await start(world, 2)
    other = replica_set("web", 3)
    other["metadata"]["name"] = "web-too"
    await world.create(RS, other)
    await world.until_status(RS, "web-too", availableReplicas=3)


@scenario("replicaset")
async def template_changed(world: World) -> None:
    """Pods that are there stay as they are, and count as not fully labelled."""
    await start(world, 2)
    changed = template("web", "registry.example/main:2")
    changed["metadata"]["labels"]["tier"] = "front"
    changed["metadata"]["annotations"] = {"note": "new"}
    await world.patch(RS, "web", {"spec": {"template": changed}})
    await world.until_status(RS, "web", fullyLabeledReplicas=0)
    await world.lose(world.pods()[0])
    await world.until_status(RS, "web", fullyLabeledReplicas=1, availableReplicas=2)


@scenario("replicaset")
async def pods_with_a_finalizer_are_let_go(world: World) -> None:
    held = template("web")
    held["metadata"]["finalizers"] = ["test.podlife.io/held"]
    await start(world, 3, template=held)
    await world.scale(RS, "web", 1)
    await until_calm(world, 1)


@scenario("replicaset")
async def deleted_in_the_background(world: World) -> None:
    await start(world, 3)
    await world.delete(RS, "web", cascade="Background")
    await world.until("all pods are gone", lambda: not world.pods())


@scenario("replicaset")
async def deleted_in_the_foreground(world: World) -> None:
    await start(world, 3)
    await world.delete(RS, "web", cascade="Foreground")
    await world.until_gone(RS, "web")


@scenario("replicaset")
async def deleted_and_waiting_for_its_pods(world: World) -> None:
    """In the foreground: it stays until its pods are gone, and makes no new ones."""
    await start(world, 2)
    world.node.hold()
    await world.delete(RS, "web", cascade="Foreground")
    await world.until("both are going", lambda: world.pods() and not world.living())
    await world.lose(world.pods()[0])
    await world.until_status(RS, "web", replicas=0, terminatingReplicas=1)


@scenario("replicaset")
async def deleted_without_its_pods(world: World) -> None:
    await start(world, 3)
    await world.delete(RS, "web", cascade="Orphan")
    await world.until_gone(RS, "web")


@scenario("replicaset")
async def deleted_without_its_pods_and_made_again(world: World) -> None:
    await start(world, 2)
    await world.delete(RS, "web", cascade="Orphan")
    await world.until_gone(RS, "web")
    await start(world, 3)


@scenario("replicaset")
async def deleted_with_its_pods_and_made_again(world: World) -> None:
    """Pods of the one before have another owner, of the same name: they go, and are not counted."""
    await start(world, 2)
    await world.delete(RS, "web", cascade="Background")
    await start(world, 3)
    await world.until_pods(3)
    await until_calm(world, 3)


@scenario("replicaset")
async def quota_refuses(world: World) -> None:
    await world.refuse_pods(2)
    await world.create(RS, replica_set("web", 4))
    await world.until_status(RS, "web", availableReplicas=2)
    await world.until("it says so", lambda: world.status(RS, "web").get("conditions"))


@scenario("replicaset")
async def quota_refuses_then_allows(world: World) -> None:
    await world.refuse_pods(2)
    await world.create(RS, replica_set("web", 4))
    await world.until_event("FailedCreate", times=2)
    await world.allow_pods()
    await until_calm(world, 4)


@scenario("replicaset")
async def admission_refuses(world: World) -> None:
    unknown = template("web", priorityClassName="nobody-made-this")
    await world.create(RS, replica_set("web", 2, template=unknown))
    await world.until_event("FailedCreate", times=2)
    await world.until("it says so", lambda: world.status(RS, "web").get("conditions"))


@scenario("replicaset")
async def namespace_terminating(world: World) -> None:
    """No event, no condition: nothing will come of it however often it is tried."""
    await start(world, 1)
    # Events cannot be written there any more, either.
    await world.until_event("SuccessfulCreate")
    await world.terminate_namespace()
    await world.scale(RS, "web", 3)
    await world.until_status(RS, "web", replicas=1)


@scenario("replicaset")
async def conflict_storm(world: World) -> None:
    await start(world, 1)
    async with world.storm(RS, "web"):
        for replicas in (5, 2, 4):
            await world.scale(RS, "web", replicas)
            await world.until_status(RS, "web", replicas=replicas, terminatingReplicas=0)
    await until_calm(world, 4)
