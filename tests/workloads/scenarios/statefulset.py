"""StatefulSets: pods with names, one after the other, and what they leave behind."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from podlife.client import CONFIG_MAPS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from podlife.errors import NotFoundError
from tests.workloads.node import PENDING, RUNS, UNREADY, WAITS, exits, fails, named
from tests.workloads.objects import labelled_pod, template
from tests.workloads.scenario import scenario
from tests.workloads.world import STORM_ANNOTATION, WaitedInVainError, World

STS = STATEFUL_SETS
CLAIMS = PERSISTENT_VOLUME_CLAIMS

Object = dict[str, Any]

PROTECTED = {
    "PersistentVolumeClaim.metadata.finalizers": "kube-apiserver protects claims from going while they are in use"
}

TOLD_TWICE = {
    "Event.SuccessfulDelete": "kube-controller-manager does not wait to see a deletion, and may delete and tell again"
}

# A claim that is made is nobody's at first; with ours it is the set's from the start.
SET_LATER = {
    "Event.SuccessfulUpdate": "kube-controller-manager tells if the pod ran already when it set the claim's owner"
}
STORMY = {
    "ControllerRevision.metadata.annotations": "how far the storm was when the revision was made is chance"
}


def stateful_set(name: str, replicas: int, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "serviceName": f"{name}-service",
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
            **spec,
        },
    }


def claim(name: str, **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def policy(*, deleted: str = "Retain", scaled: str = "Retain") -> Object:
    return {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}


async def start(world: World, replicas: int, **spec: object) -> None:
    await world.create(STS, stateful_set("web", replicas, **spec))
    await until_calm(world, replicas)


async def until_calm(world: World, replicas: int) -> None:
    await world.until_status(
        STS, "web", replicas=replicas, readyReplicas=replicas, availableReplicas=replicas
    )


async def change(world: World, image: str, **metadata: Any) -> None:
    """Another template."""
    changed = template("web", f"registry.example/main:{image}")
    await world.patch(STS, "web", {"metadata": metadata, "spec": {"template": changed}})


async def until_updated(world: World, replicas: int) -> None:
    """Every pod is of the newest revision, and no other is current."""

    def is_updated() -> bool:
        status = world.status(STS, "web")
        counts = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas")
        return (
            status.get("observedGeneration") == world.get(STS, "web")["metadata"]["generation"]
            and status["currentRevision"] == status["updateRevision"]
            and all(status.get(each, 0) == replicas for each in counts)
        )

    await world.until("all pods are updated", is_updated)


def images(world: World) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"].rpartition(":")[2]
        for pod in world.pods()
    }


async def until_claims(world: World, *names: str) -> None:
    """Until these are left. Claims that are to go are let go, as the controller does that protects them."""

    def claims() -> dict[str, Object]:
        return {each["metadata"]["name"]: each["metadata"] for each in world.all(CLAIMS)}

    def going() -> list[str]:
        return [
            name for name, each in claims().items() if "deletionTimestamp" in each and each.get("finalizers")
        ]

    while claims().keys() != {*names}:
        await world.until(f"claims {names} are left", lambda: going() or claims().keys() == {*names})
        for name in going():
            with suppress(NotFoundError):
                await world.patch(CLAIMS, name, {"metadata": {"finalizers": None}})
            await world.until_gone(CLAIMS, name)


# As many as are asked for, in order


@scenario("statefulset")
async def scale_up(world: World) -> None:
    await start(world, 1)
    await world.scale(STS, "web", 4)
    await until_calm(world, 4)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def scale_down(world: World) -> None:
    await start(world, 4)
    await world.scale(STS, "web", 1)
    await until_calm(world, 1)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def scale_to_zero_and_back(world: World) -> None:
    await start(world, 2)
    await world.scale(STS, "web", 0)
    await until_calm(world, 0)
    await world.scale(STS, "web", 2)
    await until_calm(world, 2)


@scenario("statefulset")
async def next_waits_for_one_that_is_not_ready(world: World) -> None:
    world.node.let(UNREADY, named("web-1"))
    await world.create(STS, stateful_set("web", 3))
    await world.until_status(STS, "web", replicas=2, readyReplicas=1)
    await world.settle()


@scenario("statefulset")
async def the_next_comes_when_it_is_ready(world: World) -> None:
    world.node.let(WAITS, named("web-0"))
    await world.create(STS, stateful_set("web", 2))
    await world.until_status(STS, "web", replicas=1)
    world.node.let(RUNS, named("web-0"))
    await until_calm(world, 2)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def none_goes_while_one_before_it_is_unwell(world: World) -> None:
    await start(world, 4)
    world.node.let(UNREADY, named("web-2", "web-3"))
    await world.until_status(STS, "web", readyReplicas=2)
    await world.scale(STS, "web", 1)
    await world.until_status(STS, "web", replicas=4)
    await world.settle()
    world.node.let(RUNS, named("web-3"))
    await until_calm(world, 1)


@scenario("statefulset")
async def all_at_once(world: World) -> None:
    world.node.let(UNREADY, named("web-1"))
    await world.create(STS, stateful_set("web", 4, podManagementPolicy="Parallel"))
    await world.until_status(STS, "web", replicas=4, readyReplicas=3)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def all_at_once_up_and_down(world: World) -> None:
    await start(world, 2, podManagementPolicy="Parallel")
    await world.scale(STS, "web", 5)
    await until_calm(world, 5)
    world.node.hold()
    await world.scale(STS, "web", 1)
    await world.until("four are going", lambda: len(world.living()) == 1)
    world.node.let_go()
    await until_calm(world, 1)


@scenario("statefulset")
async def numbered_from_another_start(world: World) -> None:
    await start(world, 3, ordinals={"start": 5})


@scenario("statefulset", ignoring=TOLD_TWICE)
async def start_moved(world: World) -> None:
    """The set makes those that are missing behind before the first ones go."""
    await start(world, 3)
    await world.patch(STS, "web", {"spec": {"ordinals": {"start": 2}}})
    await world.until(
        "they have moved",
        lambda: {pod["metadata"]["name"] for pod in world.pods()} == {"web-2", "web-3", "web-4"},
    )
    await until_calm(world, 3)


@scenario("statefulset")
async def available_after_min_ready_seconds(world: World) -> None:
    await world.create(STS, stateful_set("web", 2, minReadySeconds=2))
    await world.until_status(STS, "web", readyReplicas=1, availableReplicas=0)
    await until_calm(world, 2)


@scenario("statefulset")
async def not_yet_available(world: World) -> None:
    await world.create(STS, stateful_set("web", 2, minReadySeconds=3600))
    await world.until_status(STS, "web", readyReplicas=1, availableReplicas=0)
    await world.settle()


# Pods that are lost, end, come and go


@scenario("statefulset")
async def pod_lost(world: World) -> None:
    await start(world, 3)
    await world.lose(world.pods()[1])
    await world.until("a fourth pod was made", lambda: len(world.living()) == 3)
    await until_calm(world, 3)


@scenario("statefulset")
async def successor_waits_for_its_predecessor_to_go(world: World) -> None:
    await start(world, 2)
    world.node.hold()
    await world.delete(PODS, "web-0")
    await world.until_status(STS, "web", currentReplicas=1)
    await world.settle()


@scenario("statefulset")
async def pod_evicted(world: World) -> None:
    await start(world, 2)
    (first, _) = world.pods()
    await world.evict(first)
    await world.until(
        "it was made anew",
        lambda: (
            [pod["metadata"]["uid"] for pod in world.living()[:1]] not in ([first["metadata"]["uid"]], [])
        ),
    )
    await until_calm(world, 2)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def pods_that_end_are_made_anew(world: World) -> None:
    await start(world, 3)
    uids = {pod["metadata"]["uid"] for pod in world.pods()}
    ended = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.pods()}
    world.node.let(exits(1), lambda pod: pod["metadata"]["uid"] == ended["web-0"])
    world.node.let(exits(0), lambda pod: pod["metadata"]["uid"] == ended["web-1"])
    world.node.let(fails(reason="Evicted"), lambda pod: pod["metadata"]["uid"] == ended["web-2"])
    await world.until("all are others", lambda: not uids & {pod["metadata"]["uid"] for pod in world.pods()})
    await until_calm(world, 3)


@scenario("statefulset")
async def pod_adopted_and_kept(world: World) -> None:
    """It is given its name as a label; what it is made of stays as it is, since it is updated by nobody."""
    await world.create(PODS, labelled_pod("web-0"))
    await world.create(PODS, labelled_pod("web-other"))
    await world.create(PODS, labelled_pod("stranger-0", "other"))
    await start(world, 2, updateStrategy={"type": "OnDelete"})
    await world.until_event("SuccessfulUpdate")


@scenario("statefulset", ignoring=TOLD_TWICE)
async def pod_adopted_and_updated(world: World) -> None:
    """It is of no revision: it is deleted, and another one made."""
    await world.create(PODS, labelled_pod("web-0"))
    await world.create(STS, stateful_set("web", 2))
    await until_updated(world, 2)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def pod_adopted_that_is_too_many(world: World) -> None:
    await start(world, 1)
    await world.create(PODS, labelled_pod("web-7"))
    await world.until("it was deleted", lambda: world.events("SuccessfulDelete"))
    await until_calm(world, 1)


@scenario("statefulset")
async def pod_of_another_is_left_alone(world: World) -> None:
    made = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": made["metadata"]["uid"]}
    await world.create(PODS, labelled_pod("web-1", ownerReferences=[{**owner, "controller": True}]))
    await world.create(STS, stateful_set("web", 2))
    await world.until_status(STS, "web", replicas=1, readyReplicas=1)
    await world.settle()


@scenario("statefulset")
async def pod_released(world: World) -> None:
    """Its name is taken until it is gone."""
    await start(world, 2)
    released = world.pods()[1]
    await world.relabel(released, {"app": "debug"})
    await world.until_status(STS, "web", replicas=1)
    await world.lose(world.get(PODS, "web-1"))
    await until_calm(world, 2)


# Updates


@scenario("statefulset", ignoring=TOLD_TWICE)
async def template_changed(world: World) -> None:
    await start(world, 3)
    await change(world, "2")
    await until_updated(world, 3)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def template_changed_all_at_once(world: World) -> None:
    await start(world, 3, podManagementPolicy="Parallel")
    await change(world, "2")
    await until_updated(world, 3)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def update_held_by_a_pod_that_is_not_ready(world: World) -> None:
    await start(world, 3)
    world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"].endswith(":2"))
    await change(world, "2")
    await world.until_status(STS, "web", updatedReplicas=1, readyReplicas=2, currentReplicas=2)
    await world.settle()


@scenario("statefulset", ignoring=TOLD_TWICE)
async def update_of_a_part(world: World) -> None:
    await start(world, 4, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    await change(world, "2")
    await world.until_status(STS, "web", updatedReplicas=2, currentReplicas=2, readyReplicas=4)
    await world.lose(world.get(PODS, "web-0"))
    await world.until("it is what it was", lambda: images(world).get("web-0") == "1")
    await until_calm(world, 4)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def update_of_a_part_and_then_of_all(world: World) -> None:
    await start(world, 3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    await change(world, "2")
    await world.until_status(STS, "web", updatedReplicas=1, readyReplicas=3)
    await world.patch(STS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await until_updated(world, 3)


@scenario("statefulset")
async def update_on_delete(world: World) -> None:
    await start(world, 3, updateStrategy={"type": "OnDelete"})
    await change(world, "2")
    await world.until_status(STS, "web", updatedReplicas=0, currentReplicas=3)
    await world.lose(world.get(PODS, "web-1"))
    await world.until_status(STS, "web", updatedReplicas=1, currentReplicas=2, readyReplicas=3)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def rolled_back(world: World) -> None:
    """The first revision becomes the newest: there are two, not three."""
    await start(world, 2)
    await change(world, "2")
    await until_updated(world, 2)
    await change(world, "1")
    await world.until("it is back", lambda: set(images(world).values()) == {"1"})
    await until_updated(world, 2)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def history_is_kept_to_its_limit(world: World) -> None:
    await start(world, 1, revisionHistoryLimit=1)
    for image in ("2", "3", "4"):
        await change(world, image, annotations={"kubernetes.io/change-cause": f"to {image}"})
        await world.until("it is updated", lambda image=image: images(world) == {"web-0": image})
        await until_updated(world, 1)
    await world.until("two are left", lambda: len(world.all(CONTROLLER_REVISIONS)) == 2)


@scenario("statefulset", ignoring=TOLD_TWICE)
async def changed_again_before_it_was_updated(world: World) -> None:
    await start(world, 2)
    world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"].endswith(":2"))
    await change(world, "2")
    await world.until_status(STS, "web", updatedReplicas=1, readyReplicas=1)
    await change(world, "3")
    await world.until_status(STS, "web", updatedReplicas=0)
    # An ordered set waits for the one that will never be ready: somebody has to take it away.
    await world.lose(world.get(PODS, "web-1"))
    await until_updated(world, 2)


# Claims


@scenario("statefulset", ignoring=PROTECTED | TOLD_TWICE)
async def claims_outlive_their_pods(world: World) -> None:
    labelled = claim("data", labels={"disk": "fast"}, annotations={"note": "of the template"})
    await start(world, 3, volumeClaimTemplates=[labelled])
    await world.scale(STS, "web", 1)
    await until_calm(world, 1)


@scenario("statefulset", ignoring=PROTECTED)
async def claims_are_used_again(world: World) -> None:
    found = claim("data-web-0", labels={"from": "elsewhere"})
    await world.create(CLAIMS, found)
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "scratch", "emptyDir": {}}]
    made = template("web", volumes=volumes)
    await start(world, 1, volumeClaimTemplates=[claim("data")], template=made)


@scenario("statefulset", ignoring=PROTECTED | TOLD_TWICE)
async def claims_go_when_scaled_down(world: World) -> None:
    await start(world, 3, volumeClaimTemplates=[claim("data")], **policy(scaled="Delete"))
    await world.scale(STS, "web", 1)
    await until_calm(world, 1)
    await until_claims(world, "data-web-0")


@scenario("statefulset", ignoring=PROTECTED | SET_LATER)
async def claims_are_the_sets(world: World) -> None:
    await start(world, 2, volumeClaimTemplates=[claim("data")], **policy(deleted="Delete"))
    await world.until(
        "the set owns them", lambda: all("ownerReferences" in each["metadata"] for each in world.all(CLAIMS))
    )


@scenario("statefulset", ignoring=PROTECTED | SET_LATER)
async def claims_go_with_the_set(world: World) -> None:
    await start(world, 2, volumeClaimTemplates=[claim("data")], **policy(deleted="Delete", scaled="Delete"))
    await world.until(
        "the set owns them", lambda: all("ownerReferences" in each["metadata"] for each in world.all(CLAIMS))
    )
    await world.delete(STS, "web")
    await world.until_gone(STS, "web")
    await until_claims(world)


@scenario("statefulset", ignoring=PROTECTED | SET_LATER)
async def retention_changed(world: World) -> None:
    await start(world, 2, volumeClaimTemplates=[claim("data")], **policy(deleted="Delete"))
    await world.until(
        "the set owns them", lambda: all("ownerReferences" in each["metadata"] for each in world.all(CLAIMS))
    )
    await world.patch(STS, "web", {"spec": policy()})
    await world.until(
        "nobody owns them",
        lambda: not any("ownerReferences" in each["metadata"] for each in world.all(CLAIMS)),
    )


@scenario("statefulset", ignoring=PROTECTED)
async def claim_of_another_controller(world: World) -> None:
    """The retention policy does not hold for it, and the user is told."""
    made = await world.create(CONFIG_MAPS, {"metadata": {"name": "somebody"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": made["metadata"]["uid"]}
    await world.create(CLAIMS, claim("data-web-0", ownerReferences=[{**owner, "controller": True}]))
    await start(world, 1, volumeClaimTemplates=[claim("data")], **policy(deleted="Delete"))
    await world.until_event("ConflictingController")


@scenario("statefulset", ignoring=PROTECTED)
async def lost_claim_is_made_anew(world: World) -> None:
    world.node.let(PENDING)
    await world.create(STS, stateful_set("web", 1, volumeClaimTemplates=[claim("data")]))
    await world.until_status(STS, "web", replicas=1)
    uid = world.get(CLAIMS, "data-web-0")["metadata"]["uid"]
    await world.delete(CLAIMS, "data-web-0")
    with suppress(NotFoundError):
        await world.patch(CLAIMS, "data-web-0", {"metadata": {"finalizers": None}})
    await world.until_gone(CLAIMS, "data-web-0")
    # Nobody is told of claims: the set looks when something becomes of its pod or of itself. What it then
    # sees of the claims may be older than what we saw, so it is made to look until it has seen it.
    world.node.let(WAITS)
    for _ in range(20):
        with suppress(WaitedInVainError):
            await world.until("there is another", lambda: is_another(world, uid), seconds=3)
            return
        await world.patch(STS, "web", {"metadata": {"annotations": {"look": "again"}}})
        await world.patch(STS, "web", {"metadata": {"annotations": {"look": None}}})
    await world.until("there is another", lambda: is_another(world, uid))


def is_another(world: World, uid: str) -> bool:
    claim = world.find(CLAIMS, "data-web-0")
    return claim is not None and claim["metadata"]["uid"] != uid


# The end of a set


@scenario("statefulset")
async def deleted_in_the_background(world: World) -> None:
    await start(world, 3)
    await world.delete(STS, "web", cascade="Background")
    await world.until("all is gone", lambda: not world.pods() and not world.all(CONTROLLER_REVISIONS))


@scenario("statefulset")
async def deleted_in_the_foreground(world: World) -> None:
    await start(world, 3)
    await world.delete(STS, "web", cascade="Foreground")
    await world.until_gone(STS, "web")


@scenario("statefulset")
async def deleted_and_waiting_for_its_pods(world: World) -> None:
    """In the foreground: it stays until its pods are gone, and makes no new ones."""
    await start(world, 2)
    world.node.hold()
    await world.delete(STS, "web", cascade="Foreground")
    await world.until("both are going", lambda: world.pods() and not world.living())
    await world.lose(world.pods()[0])
    await world.until_status(STS, "web", replicas=1)
    await world.settle()
    assert len(world.pods()) == 1
    world.node.let_go()
    await world.until_gone(STS, "web")


@scenario("statefulset")
async def deleted_without_its_pods(world: World) -> None:
    await start(world, 2)
    await world.delete(STS, "web", cascade="Orphan")
    await world.until_gone(STS, "web")


@scenario("statefulset")
async def deleted_without_its_pods_and_made_again(world: World) -> None:
    """Pods and revisions are taken over as they are."""
    await start(world, 2)
    await world.delete(STS, "web", cascade="Orphan")
    await world.until_gone(STS, "web")
    await start(world, 3)
    await until_updated(world, 3)


@scenario("statefulset")
async def deleted_with_its_pods_and_made_again(world: World) -> None:
    """Pods of the one before have another owner, of the same name: they go, and others are made."""
    await start(world, 2)
    before = {pod["metadata"]["uid"] for pod in world.pods()}
    await world.delete(STS, "web", cascade="Background")
    await world.create(STS, stateful_set("web", 2))
    await world.until(
        "all are others",
        lambda: len(world.living()) == 2 and not before & {pod["metadata"]["uid"] for pod in world.pods()},
    )
    await until_updated(world, 2)


# Refusals


@scenario("statefulset")
async def quota_refuses(world: World) -> None:
    await world.refuse_pods(1)
    await world.create(STS, stateful_set("web", 3))
    await world.until_status(STS, "web", replicas=1, readyReplicas=1)
    await world.until_event("FailedCreate", times=2)


@scenario("statefulset")
async def quota_refuses_then_allows(world: World) -> None:
    await world.refuse_pods(1)
    await world.create(STS, stateful_set("web", 3, podManagementPolicy="Parallel"))
    await world.until_event("FailedCreate", times=2)
    await world.allow_pods()
    await until_calm(world, 3)


@scenario("statefulset")
async def admission_refuses(world: World) -> None:
    unknown = template("web", priorityClassName="nobody-made-this")
    await world.create(STS, stateful_set("web", 2, template=unknown))
    await world.until_event("FailedCreate", times=2)


@scenario("statefulset")
async def namespace_terminating(world: World) -> None:
    await start(world, 1)
    # Events cannot be written there any more.
    await world.until_event("SuccessfulCreate")
    await world.terminate_namespace()
    await world.scale(STS, "web", 3)
    await world.until_status(STS, "web", replicas=1)


@scenario("statefulset", ignoring=TOLD_TWICE | STORMY)
async def conflict_storm(world: World) -> None:
    await start(world, 1)
    async with world.storm(STS, "web"):
        for replicas in (4, 2, 3):
            await world.scale(STS, "web", replicas)
            await until_calm(world, replicas)
        await change(world, "2")
        await until_updated(world, 3)
    # The last gust may have met a conflict itself.
    await world.patch(STS, "web", {"metadata": {"annotations": {STORM_ANNOTATION: None}}})
