"""PodDisruptionBudgets: how many of their pods may be evicted, whoever made those pods.

Pods are there before their budget, where nothing else is said: how often a budget without pods is looked at is chance.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from podlife.api.codec import format_time
from podlife.client import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Ref,
)
from podlife.errors import AlreadyExistsError, NotFoundError, TooManyRequestsError
from tests.kit import objects
from tests.workloads.node import RUNS, UNREADY, named
from tests.workloads.objects import Object, labelled_pod, replica_set
from tests.workloads.scenario import scenario
from tests.workloads.scenarios.deployment import deployment
from tests.workloads.scenarios.job import job
from tests.workloads.scenarios.replicationcontroller import replication_controller
from tests.workloads.scenarios.statefulset import stateful_set
from tests.workloads.world import PATIENCE_SECONDS, World

PDB = POD_DISRUPTION_BUDGETS


def budget(name: str = "web", selector: Object | None = None, **spec: Any) -> Object:
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    return {"metadata": {"name": name}, "spec": {"selector": chosen, **spec}}


async def guard(world: World, allowed: int, **spec: Any) -> None:
    """A budget, and how many evictions it is to allow."""
    await world.create(PDB, budget(**spec))
    await world.until_status(PDB, "web", disruptionsAllowed=allowed, observedGeneration=1)


async def start_replica_set(world: World, replicas: int, name: str = "web") -> None:
    await world.create(REPLICA_SETS, replica_set(name, replicas))
    await world.until_status(REPLICA_SETS, name, availableReplicas=replicas)


async def start_pods(world: World, *names: str) -> None:
    for name in names:
        await world.create(PODS, labelled_pod(name))
    await world.until(
        "they run", lambda: all(each["status"].get("phase") == "Running" for each in world.pods())
    )


@scenario("disruption")
async def minimum_of_a_deployment(world: World) -> None:
    await world.create(DEPLOYMENTS, deployment("web", 3))
    await world.until_status(DEPLOYMENTS, "web", availableReplicas=3)
    await guard(world, 1, minAvailable=2)


@scenario("disruption")
async def share_of_a_deployment_may_be_missing(world: World) -> None:
    """Rounded up, and of the Deployment's scale."""
    await world.create(DEPLOYMENTS, deployment("web", 5))
    await world.until_status(DEPLOYMENTS, "web", availableReplicas=5)
    await guard(world, 3, maxUnavailable="41%")


@scenario("disruption")
async def share_of_a_stateful_set_must_be_there(world: World) -> None:
    await world.create(STATEFUL_SETS, stateful_set("web", 3))
    await world.until_status(STATEFUL_SETS, "web", availableReplicas=3)
    await guard(world, 1, minAvailable="50%")


@scenario("disruption")
async def share_of_a_replication_controller(world: World) -> None:
    await world.create(REPLICATION_CONTROLLERS, replication_controller(4))
    await world.until_status(REPLICATION_CONTROLLERS, "web", availableReplicas=4)
    await guard(world, 2, minAvailable="50%")


@scenario("disruption")
async def more_may_be_missing_than_there_are(world: World) -> None:
    await start_replica_set(world, 2)
    await guard(world, 2, maxUnavailable=7)


@scenario("disruption")
async def two_owners_count_together(world: World) -> None:
    await start_replica_set(world, 2)
    other = replica_set("other", 4)
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    await world.create(REPLICA_SETS, other)
    await world.until_status(REPLICA_SETS, "other", availableReplicas=4)
    either = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]}
    await guard(world, 3, selector=either, minAvailable="50%")


@scenario("disruption")
async def unready_pods_allow_nothing(world: World) -> None:
    world.node.let(UNREADY)
    await world.create(REPLICA_SETS, replica_set("web", 3))
    await world.until_status(REPLICA_SETS, "web", replicas=3)
    await guard(world, 0, maxUnavailable=1)


@scenario("disruption")
async def one_of_three_is_not_ready(world: World) -> None:
    world.node.let(UNREADY, named("b"))
    await start_pods(world, "a", "b", "c")
    await guard(world, 1, minAvailable=1)


@scenario("disruption")
async def pods_that_become_ready(world: World) -> None:
    world.node.let(UNREADY)
    await start_pods(world, "a", "b")
    await guard(world, 0, minAvailable=1)
    world.node.let(RUNS)
    await world.until_status(PDB, "web", disruptionsAllowed=1)


@scenario("disruption")
async def evicted_and_made_again(world: World) -> None:
    await start_replica_set(world, 3)
    await guard(world, 1, maxUnavailable=1)
    gone = world.pods()[0]
    await world.evict(gone)
    await world.until("it is gone", lambda: world.find(PODS, gone["metadata"]["name"]) is None)
    await world.until_status(PDB, "web", disruptionsAllowed=1, currentHealthy=3)


@scenario("disruption")
async def evicted_while_the_first_is_going(world: World) -> None:
    """A second eviction is refused while the budget is used up."""
    world.node.hold()
    await start_replica_set(world, 2)
    await guard(world, 1, maxUnavailable=1)
    first, second = world.pods()
    known = {each["metadata"]["name"] for each in (first, second)}
    # What is made in its place does not count yet.
    world.node.let(UNREADY, lambda pod: pod["metadata"]["name"] not in known)
    await world.evict(first)
    await world.until_status(PDB, "web", disruptionsAllowed=0, currentHealthy=1)
    try:
        await world.evict(second)
    except TooManyRequestsError:
        return
    raise AssertionError("it was evicted")


@scenario("disruption")
async def unready_pod_of_a_budget_that_is_not_met(world: World) -> None:
    """It is held like a healthy one, which may be needed, unless the budget says otherwise."""
    world.node.let(UNREADY, named("b"))
    await start_pods(world, "a", "b")
    await guard(world, 0, minAvailable=2)
    try:
        await world.evict(world.get(PODS, "b"))
    except TooManyRequestsError:
        await world.patch(PDB, "web", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
        await world.until_status(PDB, "web", observedGeneration=2)
        await world.evict(world.get(PODS, "b"))
        await world.until_gone(PODS, "b")
        await world.until_status(PDB, "web", expectedPods=1, currentHealthy=1)
        return
    raise AssertionError("it was evicted")


@scenario("disruption")
async def unready_pod_of_a_budget_that_is_met(world: World) -> None:
    """It counts for nothing, so it may go although none may be disrupted."""
    world.node.let(UNREADY, named("b"))
    await start_pods(world, "a", "b")
    await guard(world, 0, minAvailable=1)
    await world.evict(world.get(PODS, "b"))
    await world.until_gone(PODS, "b")
    await world.until_status(PDB, "web", expectedPods=1, currentHealthy=1)


@scenario("disruption")
async def alone_with_a_number(world: World) -> None:
    await start_pods(world, "a", "b")
    await guard(world, 1, minAvailable=1)


@scenario("disruption")
async def alone_with_a_share(world: World) -> None:
    await start_pods(world, "a", "b")
    await guard(world, 0, minAvailable="50%")
    await world.until_event("UnmanagedPods")


@scenario("disruption")
async def some_are_alone(world: World) -> None:
    await start_pods(world, "a")
    other = replica_set("web", 2)
    other["spec"]["selector"]["matchLabels"]["tier"] = "x"
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    await world.create(REPLICA_SETS, other)
    await world.until_status(REPLICA_SETS, "web", availableReplicas=2)
    await guard(world, 2, maxUnavailable=1)
    await world.until_event("UnmanagedPods")


@scenario("disruption")
async def owner_without_a_scale(world: World) -> None:
    await world.create(JOBS, job())
    await world.until(
        "its pod runs", lambda: any(p["status"].get("phase") == "Running" for p in world.pods())
    )
    work = {"matchLabels": {"app": "work"}}
    await world.create(PDB, budget(selector=work, maxUnavailable=1))
    await world.until("it has failed", lambda: world.status(PDB, "web").get("conditions"))


@scenario("disruption")
async def owner_of_a_kind_nobody_serves(world: World) -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u", "controller": True}
    await world.create(PODS, labelled_pod("a", ownerReferences=[owner]))
    await world.until("it runs", lambda: world.status(PODS, "a").get("phase") == "Running")
    await world.create(PDB, budget(minAvailable="10%"))
    await world.until("it has failed", lambda: world.status(PDB, "web").get("conditions"))


async def start_pods_of_a_custom_resource(world: World, kind: str, subresources: Object) -> None:
    """Two pods of an object that wants three. The definition is everybody's: a repetition finds it."""
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
        "subresources": subresources,
    }
    definition = {
        "metadata": {"name": f"{plural}.budgets.podlife.io"},
        "spec": {
            "group": "budgets.podlife.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }
    with contextlib.suppress(AlreadyExistsError):
        await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    ref = Ref("budgets.podlife.io", "v1", plural, kind=kind)
    about = {"apiVersion": "budgets.podlife.io/v1", "kind": kind}
    wanted = {**about, "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                made = await world.client.create(ref, wanted, world.namespace)
                break
            except NotFoundError:
                # Not served yet.
                await asyncio.sleep(0.1)
    owner = {**about, "name": "web", "uid": made["metadata"]["uid"], "controller": True}
    for name in ("a", "b"):
        await world.create(PODS, labelled_pod(name, ownerReferences=[owner]))
    await world.until("they run", lambda: all(p["status"].get("phase") == "Running" for p in world.pods()))


async def nudge_until(world: World, holds: Callable[[Object], bool]) -> None:
    """kube-controller-manager hears of a new kind after half a minute, and looks again only when something changes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        number = 0
        while not holds(world.status(PDB, "web")):
            number += 1
            await world.patch(PDB, "web", {"metadata": {"annotations": {"nudge": str(number)}}})
            await asyncio.sleep(2)
    await world.patch(PDB, "web", {"metadata": {"annotations": {"nudge": None}}})


LATE = {"Event.CalculateExpectedPodCountFailed": "how often it failed before the kind was known is chance"}


@scenario("disruption", ignoring=LATE)
async def custom_resource_with_a_scale(world: World) -> None:
    """As many as it wants, not as many as there are."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await start_pods_of_a_custom_resource(world, "Gadget", {"scale": scale})
    await world.create(PDB, budget(maxUnavailable=2))
    await nudge_until(world, lambda status: status.get("expectedPods") == 3)


@scenario("disruption", ignoring=LATE)
async def custom_resource_without_a_scale(world: World) -> None:
    await start_pods_of_a_custom_resource(world, "Trinket", {})
    await world.create(PDB, budget(maxUnavailable=2))
    await nudge_until(world, lambda status: "does not implement" in str(status.get("conditions")))


@scenario("disruption")
async def failed_and_well_again(world: World) -> None:
    """A pod that nobody can count comes, and goes again."""
    await start_replica_set(world, 2)
    await guard(world, 1, maxUnavailable=1)
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u", "controller": True}
    await world.create(PODS, labelled_pod("a", ownerReferences=[owner]))
    await world.until_status(PDB, "web", disruptionsAllowed=0)
    await world.lose(world.get(PODS, "a"))
    await world.until_status(PDB, "web", disruptionsAllowed=1)


@scenario(
    "disruption",
    ignoring={"Event.NoPods": "how often a budget is looked at before its status is seen is chance"},
)
async def no_pods(world: World) -> None:
    await guard(world, 0, minAvailable=1)
    await world.until_event("NoPods")


@scenario("disruption")
async def neither_minimum_nor_maximum(world: World) -> None:
    await start_pods(world, "a")
    await guard(world, 0)


@scenario("disruption")
async def everything_in_the_namespace(world: World) -> None:
    await start_pods(world, "a", "b", "c")
    await guard(world, 2, selector={}, minAvailable=1)


@scenario("disruption")
async def changed_budget(world: World) -> None:
    await start_replica_set(world, 4)
    await guard(world, 1, maxUnavailable=1)
    await world.patch(PDB, "web", {"spec": {"maxUnavailable": "75%"}})
    await world.until_status(PDB, "web", disruptionsAllowed=3, observedGeneration=2)


@scenario("disruption")
async def scaled_up(world: World) -> None:
    await start_replica_set(world, 2)
    await guard(world, 1, maxUnavailable=1)
    await world.scale(REPLICA_SETS, "web", 4)
    await world.until_status(REPLICA_SETS, "web", availableReplicas=4)
    await world.until_status(PDB, "web", expectedPods=4, currentHealthy=4)


@scenario(
    "disruption",
    ignoring={"Event.MultiplePodDisruptionBudgets": "which one it names is chance; ours tells it once"},
)
async def covered_twice(world: World) -> None:
    await start_pods(world, "a", "b")
    await guard(world, 1, minAvailable=1)
    await world.create(PDB, budget("second", minAvailable=2))
    await world.until_status(PDB, "second", desiredHealthy=2, currentHealthy=2)


@scenario(
    "disruption",
    ignoring={
        "Event.NotDeleted": "kube-controller-manager writes the namespace in place of the budget's name"
    },
)
async def eviction_without_deletion(world: World) -> None:
    """Recorded as evicted, and two minutes later not deleted."""
    await start_pods(world, "a", "b")
    await guard(world, 1, minAvailable=1)
    recorded = {"disruptedPods": {"a": format_time(world.clock.now())}, "disruptionsAllowed": 0}
    await world.patch(PDB, "web", {"status": recorded}, subresource="status")
    await world.until_status(PDB, "web", currentHealthy=1, disruptionsAllowed=0)
    await world.until_status(PDB, "web", currentHealthy=2, disruptionsAllowed=1)


@scenario("disruption")
async def record_of_a_pod_that_is_not_there(world: World) -> None:
    await start_pods(world, "a", "b")
    await guard(world, 1, minAvailable=1)
    recorded = {"disruptedPods": {"gone": format_time(world.clock.now())}, "disruptionsAllowed": 0}
    await world.patch(PDB, "web", {"status": recorded}, subresource="status")
    await world.until_status(PDB, "web", currentHealthy=2, disruptionsAllowed=1)


def _mark(world: World, reason: str, known: list[Object]) -> Object:
    mark = objects.condition(
        "DisruptionTarget",
        "True",
        reason=reason,
        message="on its way out",
        lastTransitionTime=format_time(world.clock.now()),
    )
    return {"conditions": [*known, mark]}


@scenario("disruption")
async def marked_and_not_deleted(world: World) -> None:
    await start_pods(world, "a")
    pod = world.get(PODS, "a")
    await world.set_pod_status(pod, _mark(world, "EvictionByEvictionAPI", pod["status"]["conditions"]))

    def is_reset() -> bool:
        conditions = world.status(PODS, "a").get("conditions", [])
        return any(each["type"] == "DisruptionTarget" and each["status"] == "False" for each in conditions)

    await world.until("the mark is taken off", is_reset)


@scenario("disruption")
async def marked_by_the_kubelet(world: World) -> None:
    await start_pods(world, "a")
    pod = world.get(PODS, "a")
    await world.set_pod_status(pod, _mark(world, "TerminationByKubelet", pod["status"]["conditions"]))
    await world.settle(seconds=125)
