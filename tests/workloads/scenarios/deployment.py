"""Deployments: one template's pods replaced by another's, as far as may be missing or too many at a time.

Where pods become available in batches the steps of a rollout differ from run to run: such scenarios roll one pod at a
time, or say which counts of steps are not compared.
"""

from __future__ import annotations

from typing import Any

from podlife.client import DEPLOYMENTS, REPLICA_SETS
from tests.workloads.node import RUNS, UNREADY, WAITS
from tests.workloads.objects import Object, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

RS = REPLICA_SETS
SECOND, THIRD, FOURTH = (f"registry.example/main:{number}" for number in (2, 3, 4))
ONE_MORE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
ONE_LESS = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
RECREATE = {"type": "Recreate"}
STEPS_VARY = {
    "Event.ScalingReplicaSet": "how many pods a step takes depends on how many became ready at once",
    "ReplicaSet.metadata.generation": "it counts the steps",
    "ReplicaSet.status.observedGeneration": "it counts the steps",
}


def deployment(name: str, replicas: int, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    wanted = {"replicas": replicas, "selector": selector, "template": template(name), "strategy": ONE_MORE}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {**wanted, **spec}}


def has_image(image: str) -> Any:
    return lambda pod: pod["spec"]["containers"][0]["image"] == image


async def change(world: World, **spec: Any) -> None:
    await world.patch(DEPLOYMENTS, "web", {"spec": spec})


async def change_image(world: World, image: str) -> None:
    await change(world, template={"spec": {"containers": [{"name": "main", "image": image}]}})


async def until_done(world: World, replicas: int) -> None:
    """Until the rollout is over and nothing of the old pods is left."""
    counts = {"replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas}
    await world.until_status(DEPLOYMENTS, "web", **counts)
    await world.until("only its pods are there", lambda: len(world.pods()) == replicas)


async def until_condition(world: World, type_: str, reason: str) -> None:
    def holds() -> bool:
        conditions = world.status(DEPLOYMENTS, "web").get("conditions") or []
        return any(each["type"] == type_ and each.get("reason") == reason for each in conditions)

    await world.until(f"{type_} because of {reason}", holds)


def replica_set_of(world: World, image: str) -> Object:
    found = [each for each in world.all(RS) if has_image(image)(each["spec"]["template"])]
    assert len(found) == 1, f"{len(found)} ReplicaSets have {image}"
    return found[0]


async def until_sizes(world: World, *sizes: int) -> None:
    """Until the ReplicaSets have these sizes, in whatever order, and their pods are there."""

    def holds() -> bool:
        known = world.all(RS)
        return sorted(each["spec"]["replicas"] for each in known) == sorted(sizes) and all(
            (each.get("status") or {}).get("replicas", 0) == each["spec"]["replicas"] for each in known
        )

    await world.until(f"ReplicaSets of {sizes}", holds)


async def start(world: World, replicas: int, **spec: Any) -> None:
    await world.create(DEPLOYMENTS, deployment("web", replicas, **spec))
    await until_done(world, replicas)


async def resize(world: World, replicas: int) -> None:
    await world.scale(DEPLOYMENTS, "web", replicas)
    await until_done(world, replicas)


async def roll_out(world: World, image: str, replicas: int) -> None:
    await change_image(world, image)
    await until_done(world, replicas)


async def get_stuck(world: World, old: int, new: int) -> None:
    """A rollout whose new pods never become ready, so that the ReplicaSets keep these sizes."""
    world.node.let(UNREADY, has_image(SECOND))
    await change_image(world, SECOND)
    await until_sizes(world, old, new)


# Size


@scenario("deployment")
async def scale_up(world: World) -> None:
    await start(world, 2)
    await resize(world, 5)


@scenario("deployment")
async def scale_down(world: World) -> None:
    await start(world, 5)
    await resize(world, 2)


@scenario("deployment")
async def scale_to_zero_and_back(world: World) -> None:
    await start(world, 3)
    await resize(world, 0)
    await resize(world, 2)


@scenario("deployment")
async def created_with_no_replicas(world: World) -> None:
    await start(world, 0)
    await until_condition(world, "Progressing", "NewReplicaSetAvailable")


@scenario("deployment")
async def scale_by_shares_in_a_rollout(world: World) -> None:
    """Ten pods, eight of them at least and thirteen at most: the new ones never become ready. Then there are to be
    fifteen, and all get their share."""
    limits = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await start(world, 10, strategy=limits)
    await get_stuck(world, 8, 5)
    await world.scale(DEPLOYMENTS, "web", 15)
    await until_sizes(world, 11, 7)


@scenario("deployment")
async def scale_down_by_shares_in_a_rollout(world: World) -> None:
    limits = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await start(world, 10, strategy=limits)
    await get_stuck(world, 8, 5)
    await world.scale(DEPLOYMENTS, "web", 5)
    await world.until("eight pods", lambda: len(world.pods()) == 8)
    await world.until_status(DEPLOYMENTS, "web", replicas=8)


# Rollouts


@scenario("deployment")
async def template_changed_with_surge(world: World) -> None:
    await start(world, 3)
    await roll_out(world, SECOND, 3)


@scenario("deployment")
async def template_changed_without_surge(world: World) -> None:
    await start(world, 3, strategy=ONE_LESS)
    await roll_out(world, SECOND, 3)


@scenario("deployment", ignoring=STEPS_VARY)
async def template_changed_by_percentages(world: World) -> None:
    limits = {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "20%"}}
    await start(world, 7, strategy=limits)
    await roll_out(world, SECOND, 7)


@scenario("deployment", ignoring=STEPS_VARY)
async def template_changed_in_a_rollout(world: World) -> None:
    await start(world, 3)
    await get_stuck(world, 3, 1)
    await roll_out(world, THIRD, 3)


@scenario("deployment")
async def rollout_that_never_gets_ready(world: World) -> None:
    await start(world, 4, strategy=ONE_LESS)
    await get_stuck(world, 3, 1)
    await world.until_status(DEPLOYMENTS, "web", replicas=4, updatedReplicas=1, availableReplicas=3)


@scenario("deployment", ignoring=STEPS_VARY)
async def unhealthy_old_pods_go_first(world: World) -> None:
    world.node.let(UNREADY)
    await world.create(DEPLOYMENTS, deployment("web", 3))
    await world.until_status(DEPLOYMENTS, "web", replicas=3, unavailableReplicas=3)
    world.node.let(RUNS, has_image(SECOND))
    await roll_out(world, SECOND, 3)


@scenario("deployment")
async def pods_must_be_ready_for_a_while(world: World) -> None:
    await start(world, 2, minReadySeconds=1)
    await roll_out(world, SECOND, 2)


@scenario("deployment")
async def seconds_to_be_ready_changed(world: World) -> None:
    await start(world, 0, minReadySeconds=1)
    await until_condition(world, "Progressing", "NewReplicaSetAvailable")
    await change(world, minReadySeconds=2)
    await world.until("its ReplicaSet has it", lambda: world.all(RS)[0]["spec"].get("minReadySeconds") == 2)
    await until_done(world, 0)


@scenario("deployment")
async def recreated(world: World) -> None:
    await start(world, 3, strategy=RECREATE)
    await roll_out(world, SECOND, 3)


@scenario("deployment")
async def recreated_after_old_pods_are_gone(world: World) -> None:
    await start(world, 2, strategy=RECREATE)
    world.node.hold()
    await change_image(world, SECOND)
    await world.until_status(DEPLOYMENTS, "web", replicas=0, terminatingReplicas=2)
    await world.settle(seconds=1)
    assert not world.living(), "a new pod is there before the old ones are gone"
    world.node.let_go()
    await until_done(world, 2)


@scenario("deployment")
async def recreate_scaled_and_scaled(world: World) -> None:
    await start(world, 1, strategy=RECREATE)
    await resize(world, 3)
    await resize(world, 2)


@scenario("deployment", ignoring=STEPS_VARY)
async def strategy_changed_in_a_rollout(world: World) -> None:
    await start(world, 3)
    await get_stuck(world, 3, 1)
    await change(world, strategy={**RECREATE, "rollingUpdate": None})
    await until_sizes(world, 0, 3)
    world.node.let(RUNS)
    await until_done(world, 3)


@scenario("deployment")
async def surge_changed(world: World) -> None:
    """It is marked on the ReplicaSet only when that is scaled the next time."""
    await start(world, 2)
    await change(world, strategy={"rollingUpdate": {"maxSurge": 3}})
    await until_done(world, 2)
    await world.settle(seconds=1)
    await resize(world, 3)
    await change(world, strategy={"rollingUpdate": {"maxSurge": 2}})
    await until_done(world, 3)


# Pausing and going back


@scenario("deployment")
async def paused_and_resumed(world: World) -> None:
    await start(world, 2)
    await change(world, paused=True)
    await until_condition(world, "Progressing", "DeploymentPaused")
    await change_image(world, SECOND)
    await world.settle(seconds=1)
    assert len(world.all(RS)) == 1, "nothing is rolled out while it is paused"
    await change(world, paused=None)
    await until_done(world, 2)
    await until_condition(world, "Progressing", "NewReplicaSetAvailable")


@scenario("deployment")
async def scaled_while_paused(world: World) -> None:
    await start(world, 2)
    await change(world, paused=True)
    await until_condition(world, "Progressing", "DeploymentPaused")
    await resize(world, 4)


@scenario("deployment")
async def created_paused(world: World) -> None:
    await world.create(DEPLOYMENTS, deployment("web", 2, paused=True))
    await until_condition(world, "Progressing", "DeploymentPaused")
    await world.until_status(DEPLOYMENTS, "web", replicas=0)


@scenario("deployment")
async def gone_back_to_the_first_template(world: World) -> None:
    """As `kubectl rollout undo` does it; twice, so that one ReplicaSet has been three revisions."""
    first = template("web")["spec"]["containers"][0]["image"]
    await start(world, 2)
    for image in (SECOND, first, SECOND, first):
        await change_image(world, image)
        await until_done(world, 2)


@scenario("deployment")
async def rolled_back_by_annotation(world: World) -> None:
    await start(world, 2)
    await roll_out(world, SECOND, 2)
    asked = {"deprecated.deployment.rollback.to": "1"}
    await world.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": asked}})
    await world.until_event("DeploymentRollback")
    await until_done(world, 2)


@scenario("deployment")
async def rolled_back_to_nowhere(world: World) -> None:
    await start(world, 1)
    asked = {"deprecated.deployment.rollback.to": "7"}
    await world.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": asked}})
    await world.until_event("DeploymentRollbackRevisionNotFound")
    await until_done(world, 1)


@scenario("deployment")
async def history_is_limited(world: World) -> None:
    await start(world, 1, revisionHistoryLimit=1)
    for image in (SECOND, THIRD, FOURTH):
        await change_image(world, image)
        await until_done(world, 1)
    await world.until("two ReplicaSets are left", lambda: len(world.all(RS)) == 2)


@scenario("deployment")
async def no_history(world: World) -> None:
    await start(world, 1, revisionHistoryLimit=0)
    await roll_out(world, SECOND, 1)
    await world.until("one ReplicaSet is left", lambda: len(world.all(RS)) == 1)


# Deadlines


@scenario("deployment")
async def late(world: World) -> None:
    world.node.let(WAITS)
    await world.create(DEPLOYMENTS, deployment("web", 1, progressDeadlineSeconds=2))
    await until_condition(world, "Progressing", "ProgressDeadlineExceeded")


@scenario("deployment")
async def late_and_then_done(world: World) -> None:
    await start(world, 1, progressDeadlineSeconds=2)
    world.node.let(UNREADY, has_image(SECOND))
    await change_image(world, SECOND)
    await until_condition(world, "Progressing", "ProgressDeadlineExceeded")
    world.node.let(RUNS)
    await until_done(world, 1)
    await until_condition(world, "Progressing", "NewReplicaSetAvailable")


@scenario("deployment")
async def without_a_deadline(world: World) -> None:
    await start(world, 1, progressDeadlineSeconds=2147483647)
    await roll_out(world, SECOND, 1)


# What others do


@scenario("deployment")
async def pod_lost(world: World) -> None:
    await start(world, 2)
    await world.lose(world.pods()[0])
    await until_done(world, 2)


@scenario("deployment")
async def annotations_are_copied(world: World) -> None:
    await start(world, 1)
    cause = {"kubernetes.io/change-cause": "because", "deployment.kubernetes.io/desired-replicas": "9"}
    await world.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": cause}})
    await world.until(
        "its ReplicaSet has it",
        lambda: "kubernetes.io/change-cause" in world.all(RS)[0]["metadata"]["annotations"],
    )
    await until_done(world, 1)


@scenario(
    "deployment",
    ignoring={
        "Event.SuccessfulCreate": "whether the pods are made before it is put back is a race",
        "Event.SuccessfulDelete": "and so is whether they have to go again",
    },
)
async def replica_set_scaled_by_hand(world: World) -> None:
    await start(world, 2)
    await world.scale(RS, world.all(RS)[0]["metadata"]["name"], 4)
    await world.until("it was put back", lambda: world.all(RS)[0]["metadata"]["generation"] == 3)
    await until_done(world, 2)


@scenario("deployment")
async def replica_set_deleted(world: World) -> None:
    await start(world, 2)
    (first,) = world.all(RS)
    uid = first["metadata"]["uid"]
    await world.delete(RS, first["metadata"]["name"])
    await world.until(
        "another one is there", lambda: uid not in {each["metadata"]["uid"] for each in world.all(RS)}
    )
    await until_done(world, 2)


def orphan(image: str, replicas: int, hash_: str) -> Object:
    labels = {"app": "web", "pod-template-hash": hash_}
    made = template("web", image)
    made["metadata"]["labels"] = labels
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": made}
    return {"metadata": {"name": f"web-{hash_}", "labels": labels}, "spec": spec}


@scenario("deployment")
async def replica_set_of_its_template_adopted(world: World) -> None:
    first = template("web")["spec"]["containers"][0]["image"]
    await world.create(RS, orphan(first, 1, "bcdfghjklm"))
    await world.until_status(RS, "web-bcdfghjklm", availableReplicas=1)
    await start(world, 2)


@scenario("deployment", ignoring=STEPS_VARY)
async def replica_set_of_another_template_adopted(world: World) -> None:
    await start(world, 2)
    await world.create(RS, orphan(SECOND, 2, "bcdfghjklm"))
    await world.until(
        "it was adopted", lambda: all("ownerReferences" in each["metadata"] for each in world.all(RS))
    )
    await until_done(world, 2)


@scenario("deployment")
async def replica_set_released(world: World) -> None:
    """It keeps its pods, and its name: the next one has to have another."""
    await start(world, 1)
    name = world.all(RS)[0]["metadata"]["name"]
    await world.patch(RS, name, {"metadata": {"labels": {"app": "other"}}})
    await world.until("another one is there", lambda: len(world.all(RS)) == 2)
    await world.until_status(DEPLOYMENTS, "web", availableReplicas=1, collisionCount=1)
    await world.until("it was released", lambda: "ownerReferences" not in world.get(RS, name)["metadata"])


# The end


@scenario("deployment")
async def deleted_in_the_background(world: World) -> None:
    await start(world, 2)
    await world.delete(DEPLOYMENTS, "web")
    await world.until("nothing is left", lambda: not world.all(RS) and not world.pods())


@scenario("deployment")
async def deleted_in_the_foreground(world: World) -> None:
    await start(world, 2)
    await world.delete(DEPLOYMENTS, "web", cascade="Foreground")
    await world.until_gone(DEPLOYMENTS, "web")


@scenario("deployment")
async def deleted_with_orphans(world: World) -> None:
    await start(world, 2)
    await world.delete(DEPLOYMENTS, "web", cascade="Orphan")
    await world.until_gone(DEPLOYMENTS, "web")
    await world.until(
        "its ReplicaSet is nobody's", lambda: "ownerReferences" not in world.all(RS)[0]["metadata"]
    )


@scenario("deployment")
async def deleted_and_created_again(world: World) -> None:
    """Its orphans are adopted by their labels, as anybody's would be."""
    await start(world, 2)
    await world.delete(DEPLOYMENTS, "web", cascade="Orphan")
    await world.until_gone(DEPLOYMENTS, "web")
    await start(world, 2)


# Refusals


@scenario("deployment")
async def quota_refuses_then_allows(world: World) -> None:
    await world.refuse_pods(1)
    await world.create(DEPLOYMENTS, deployment("web", 3))
    await until_condition(world, "ReplicaFailure", "FailedCreate")
    await world.allow_pods()
    await until_done(world, 3)


@scenario("deployment")
async def quota_keeps_refusing(world: World) -> None:
    await world.refuse_pods(1)
    await world.create(DEPLOYMENTS, deployment("web", 3))
    await until_condition(world, "ReplicaFailure", "FailedCreate")
    await world.until_status(DEPLOYMENTS, "web", replicas=1, availableReplicas=1, unavailableReplicas=2)


@scenario("deployment")
async def namespace_terminating(world: World) -> None:
    await start(world, 1)
    await world.until_event("SuccessfulCreate")
    await world.until_event("ScalingReplicaSet")
    await world.terminate_namespace()
    await change_image(world, SECOND)
    await world.settle(seconds=1)


@scenario(
    "deployment",
    ignoring={
        **STEPS_VARY,
        "ReplicaSet.metadata.annotations": "what the storm wrote last is copied",
        "Deployment.metadata.generation": "it counts the gusts",
        "Deployment.status.observedGeneration": "it counts the gusts",
        "Deployment.status.conditions.*.message": "that of the rollout before stays where no step could be told",
    },
)
async def rolled_out_in_a_storm(world: World) -> None:
    await start(world, 3)
    async with world.storm(DEPLOYMENTS, "web"):
        await change_image(world, SECOND)
        await world.until(
            "all are new", lambda: len(world.pods()) == 3 and all(map(has_image(SECOND), world.pods()))
        )
    await until_done(world, 3)


@scenario("deployment")
async def scaled_while_its_replica_set_is_written(world: World) -> None:
    await start(world, 2)
    async with world.storm(RS, world.all(RS)[0]["metadata"]["name"]):
        await world.scale(DEPLOYMENTS, "web", 4)
        await world.until_pods(4)
    await until_done(world, 4)
