"""DaemonSets: a pod on every node that fits, whatever becomes of pods, nodes and templates.

Nodes are everybody's: each scenario has its own, and its DaemonSet selects them by their label.
"""

from __future__ import annotations

from typing import Any

from podlife.client import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from tests.workloads.node import PENDING, RUNS, UNREADY, exits, named
from tests.workloads.objects import Object, labelled_pod, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

DS = DAEMON_SETS
AGENT = "agent"
IN_PLACE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
ON_DELETE = {"type": "OnDelete"}
# Upstream counts ends, not pods: one that is seen going and gone counts for two, and what still goes is asked again.
DELETED_TWICE = {"Event.SuccessfulDelete": "upstream may ask a pod to go that was asked already"}
WHICH_IS_FIRST = {
    "Pod.spec.nodeName": "which node is updated first is nobody's to say",
    "Pod.spec.affinity": "which node is updated first is nobody's to say",
}


def taint(key: str, effect: str, value: str = "") -> Object:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


async def node(world: World, suffix: str, *taints: Object, **labels: str) -> str:
    """Without the taint that a real server gives every new node."""
    name = await world.create_node(suffix)
    await world.patch(NODES, name, {"metadata": {"labels": labels}, "spec": {"taints": list(taints) or None}})
    return name


def daemon(world: World, *, image: str = "registry.example/main:1", **spec: Any) -> Object:
    """A DaemonSet for the nodes of this scenario; `pod` is more of its pods' spec."""
    pod = {"nodeSelector": {"scenario": world.namespace}, **spec.pop("pod", {})}
    return {
        "metadata": {"name": AGENT, "labels": {"app": AGENT}},
        "spec": {
            "selector": {"matchLabels": {"app": AGENT}},
            "template": template(AGENT, image, **pod),
            **spec,
        },
    }


async def running(world: World, count: int = 3, **spec: Any) -> list[Object]:
    """A DaemonSet at work on so many nodes; gives its pods in the order of the nodes."""
    for suffix in "abcdefgh"[:count]:
        await node(world, suffix)
    await world.create(DS, daemon(world, **spec))
    await serves(world, count)
    return sorted(world.living(), key=lambda pod: pod["spec"]["nodeName"])


async def serves(world: World, count: int) -> None:
    await world.until_status(
        DS,
        AGENT,
        desiredNumberScheduled=count,
        currentNumberScheduled=count,
        numberAvailable=count,
        updatedNumberScheduled=count,
        numberMisscheduled=0,
    )
    await world.until("nobody is on the way out", lambda: len(world.pods()) == count)


async def change_image(world: World, image: str) -> None:
    container = {"name": "main", "image": image}
    await world.strategic_patch(DS, AGENT, {"spec": {"template": {"spec": {"containers": [container]}}}})


def images(world: World) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in world.pods()}


def on(world: World, suffix: str) -> list[Object]:
    name = f"{world.namespace}-{suffix}"
    return [pod for pod in world.living() if pod["spec"].get("nodeName") == name]


# Nodes


@scenario("daemonset")
async def on_every_node(world: World) -> None:
    await running(world, 3)


@scenario("daemonset")
async def no_node_fits(world: World) -> None:
    await node(world, "a")
    await world.create(DS, daemon(world, pod={"nodeSelector": {"scenario": "none"}}))
    await world.until_status(DS, AGENT, observedGeneration=1)


@scenario("daemonset")
async def node_added(world: World) -> None:
    await running(world, 2)
    await node(world, "late")
    await serves(world, 3)


@scenario("daemonset")
async def node_removed(world: World) -> None:
    pods = await running(world, 3)
    await world.delete(NODES, pods[0]["spec"]["nodeName"])
    # Somebody has to clear the pod away; and upstream looks again only then.
    await world.lose(pods[0])
    await serves(world, 2)


@scenario("daemonset")
async def node_relabelled(world: World) -> None:
    await node(world, "a", disk="ssd")
    await node(world, "b", disk="hdd")
    selector = {"scenario": world.namespace, "disk": "ssd"}
    await world.create(DS, daemon(world, pod={"nodeSelector": selector}))
    await serves(world, 1)
    await world.patch(NODES, f"{world.namespace}-b", {"metadata": {"labels": {"disk": "ssd"}}})
    await serves(world, 2)
    await world.patch(NODES, f"{world.namespace}-a", {"metadata": {"labels": {"disk": "hdd"}}})
    await serves(world, 1)


@scenario("daemonset")
async def required_affinity(world: World) -> None:
    await node(world, "a", disk="ssd", cores="4")
    await node(world, "b", disk="ssd", cores="16")
    await node(world, "c", disk="hdd", cores="16")
    expressions = [
        {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]},
        {"key": "cores", "operator": "Gt", "values": ["8"]},
    ]
    by_name = {"key": "metadata.name", "operator": "In", "values": [f"{world.namespace}-c"]}
    terms = [{"matchExpressions": expressions}, {"matchFields": [by_name]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    await world.create(DS, daemon(world, pod={"affinity": affinity}))
    await serves(world, 2)


@scenario("daemonset")
async def node_tainted_no_schedule(world: World) -> None:
    await running(world, 2)
    name = f"{world.namespace}-a"
    await world.patch(NODES, name, {"spec": {"taints": [taint("maintenance", "NoSchedule")]}})
    await world.settle()
    # What is there stays; upstream notices when it looks again.
    await world.lose(on(world, "b")[0])
    await world.until_status(
        DS, AGENT, desiredNumberScheduled=1, numberMisscheduled=1, numberAvailable=1, numberUnavailable=0
    )
    # And none comes again in its place.
    await world.lose(on(world, "a")[0])
    await serves(world, 1)


@scenario("daemonset")
async def node_tainted_no_execute(world: World) -> None:
    await running(world, 2)
    name = f"{world.namespace}-a"
    await world.patch(NODES, name, {"spec": {"taints": [taint("maintenance", "NoExecute", "now")]}})
    await serves(world, 1)


@scenario("daemonset")
async def taint_taken_away(world: World) -> None:
    name = await node(world, "a", taint("maintenance", "NoSchedule"))
    await node(world, "b")
    await world.create(DS, daemon(world))
    await serves(world, 1)
    await world.patch(NODES, name, {"spec": {"taints": None}})
    await serves(world, 2)


@scenario("daemonset")
async def taints_that_daemons_bear(world: World) -> None:
    key = "node.kubernetes.io/"
    await node(world, "a", taint(f"{key}not-ready", "NoExecute"))
    await node(world, "b", taint(f"{key}unreachable", "NoExecute"))
    await node(world, "c", taint(f"{key}memory-pressure", "NoSchedule"))
    await node(world, "d", taint(f"{key}unschedulable", "NoSchedule"))
    await node(world, "e", taint(f"{key}network-unavailable", "NoSchedule"))
    await world.create(DS, daemon(world, pod={"hostNetwork": True}))
    await serves(world, 5)


@scenario("daemonset")
async def node_cordoned(world: World) -> None:
    await running(world, 2)
    cordon = {"unschedulable": True, "taints": [taint("node.kubernetes.io/unschedulable", "NoSchedule")]}
    await world.patch(NODES, f"{world.namespace}-a", {"spec": cordon})
    await world.lose(on(world, "a")[0])
    await serves(world, 2)


@scenario("daemonset")
async def pods_for_a_node_that_is_gone(world: World) -> None:
    world.node.let(PENDING)
    for suffix in "ab":
        await node(world, suffix)
    await world.create(DS, daemon(world))
    await world.until_pods(2)
    await world.delete(NODES, f"{world.namespace}-a")
    # Upstream looks when something happens.
    await world.patch(DS, AGENT, {"spec": {"minReadySeconds": 1}})
    await world.until("one pod is left", lambda: len(world.pods()) == 1)
    await world.until_status(DS, AGENT, desiredNumberScheduled=1, currentNumberScheduled=1)


# Pods


@scenario("daemonset")
async def pod_lost(world: World) -> None:
    pods = await running(world, 3)
    await world.lose(pods[1])
    await serves(world, 3)


@scenario("daemonset")
async def pod_deleted_takes_its_time(world: World) -> None:
    pods = await running(world, 2)
    world.node.hold()
    await world.delete(PODS, pods[0]["metadata"]["name"])
    await world.settle()
    world.node.let_go()
    await serves(world, 2)


@scenario("daemonset")
async def pod_failed(world: World) -> None:
    pods = await running(world, 2)
    world.node.let(exits(1), named(pods[0]["metadata"]["name"]))
    await world.until_event("FailedDaemonPod")
    await serves(world, 2)


@scenario("daemonset")
async def pod_succeeded(world: World) -> None:
    pods = await running(world, 2)
    world.node.let(exits(0), named(pods[0]["metadata"]["name"]))
    await world.until_event("SucceededDaemonPod")
    await serves(world, 2)


@scenario("daemonset", ignoring={"Event": "how often it has failed when it is let run differs"})
async def pod_fails_again_and_again(world: World) -> None:
    await node(world, "a")
    world.node.let(exits(1))
    await world.create(DS, daemon(world))
    await world.until_event("FailedDaemonPod", times=3)
    failed = {pod["metadata"]["name"] for pod in world.pods()}
    world.node.let(RUNS, lambda pod: pod["metadata"]["name"] not in failed)
    await serves(world, 1)


@scenario("daemonset")
async def pod_adopted(world: World) -> None:
    name = await node(world, "a")
    await node(world, "b")
    orphan = labelled_pod("orphan", AGENT)
    orphan["spec"]["nodeName"] = name
    await world.create(PODS, orphan)
    await world.create(DS, daemon(world, updateStrategy=ON_DELETE))
    await world.until_status(DS, AGENT, numberAvailable=2, updatedNumberScheduled=1)


@scenario("daemonset")
async def pod_released(world: World) -> None:
    pods = await running(world, 2)
    await world.relabel(pods[0], {"app": "mine"})
    await world.until_status(DS, AGENT, numberAvailable=2, updatedNumberScheduled=2)
    await world.until("it is nobody's", lambda: not owners(world, pods[0]))
    await world.until("and there is another", lambda: len(world.living(app=AGENT)) == 2)


def owners(world: World, pod: Object) -> list[Object]:
    found: list[Object] = world.get(PODS, pod["metadata"]["name"])["metadata"].get("ownerReferences") or []
    return found


@scenario("daemonset")
async def too_many_on_a_node(world: World) -> None:
    await running(world, 2)
    orphan = labelled_pod("zz-another", AGENT)
    orphan["spec"]["nodeName"] = f"{world.namespace}-a"
    await world.create(PODS, orphan)
    await world.until_gone(PODS, "zz-another")
    await serves(world, 2)


@scenario("daemonset")
async def ready_for_a_while(world: World) -> None:
    await running(world, 2, minReadySeconds=2)


# Templates and history


@scenario("daemonset")
async def template_changed(world: World) -> None:
    await running(world, 3, updateStrategy=IN_PLACE)
    await change_image(world, "registry.example/main:2")
    await serves(world, 3)


@scenario("daemonset", ignoring=DELETED_TWICE)
async def update_of_half_at_a_time(world: World) -> None:
    rolling = {"maxUnavailable": "50%", "maxSurge": 0}
    await running(world, 4, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    await change_image(world, "registry.example/main:2")
    await serves(world, 4)


@scenario("daemonset")
async def update_with_surge(world: World) -> None:
    await running(world, 3, updateStrategy=SURGE)
    await change_image(world, "registry.example/main:2")
    await serves(world, 3)


@scenario("daemonset", ignoring=WHICH_IS_FIRST)
async def update_that_gets_stuck(world: World) -> None:
    await running(world, 3, updateStrategy=IN_PLACE)
    world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"].endswith(":broken"))
    await change_image(world, "registry.example/main:broken")
    await world.until_status(
        DS, AGENT, updatedNumberScheduled=1, numberUnavailable=1, currentNumberScheduled=3
    )


@scenario("daemonset", ignoring=WHICH_IS_FIRST)
async def surge_that_gets_stuck(world: World) -> None:
    await running(world, 3, updateStrategy=SURGE)
    # The older of two pods counts, and times are in seconds.
    await world.settle()
    world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"].endswith(":broken"))
    await change_image(world, "registry.example/main:broken")
    await world.until_pods(4)
    await world.until_status(DS, AGENT, numberAvailable=3)


@scenario("daemonset", ignoring=WHICH_IS_FIRST)
async def stuck_update_taken_back(world: World) -> None:
    await running(world, 3, updateStrategy=IN_PLACE)
    world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"].endswith(":broken"))
    await change_image(world, "registry.example/main:broken")
    await world.until_status(DS, AGENT, updatedNumberScheduled=1, numberUnavailable=1)
    await change_image(world, "registry.example/main:1")
    await serves(world, 3)


@scenario("daemonset")
async def update_on_delete(world: World) -> None:
    pods = await running(world, 2, updateStrategy=ON_DELETE)
    await change_image(world, "registry.example/main:2")
    await world.until_status(DS, AGENT, numberAvailable=2, updatedNumberScheduled=0)
    await world.settle()
    await world.delete(PODS, pods[0]["metadata"]["name"])
    await world.until_status(DS, AGENT, numberAvailable=2, updatedNumberScheduled=1)


@scenario("daemonset")
async def rolled_back(world: World) -> None:
    await running(world, 2)
    await change_image(world, "registry.example/main:2")
    await serves(world, 2)
    # What `kubectl rollout undo` does: the first revision's data is a patch.
    first = next(each for each in world.all(CONTROLLER_REVISIONS) if each["revision"] == 1)
    await world.strategic_patch(DS, AGENT, first["data"])
    await world.until("the first is the newest", lambda: numbers(world) == [2, 3])
    await serves(world, 2)


def numbers(world: World) -> list[int]:
    return sorted(each["revision"] for each in world.all(CONTROLLER_REVISIONS))


@scenario("daemonset")
async def history_limited(world: World) -> None:
    await running(world, 1, revisionHistoryLimit=1)
    for number in (2, 3, 4):
        await change_image(world, f"registry.example/main:{number}")
        await serves(world, 1)
        await world.until("so many revisions", lambda: len(numbers(world)) == 2)
    await world.until("the last two are left", lambda: numbers(world) == [3, 4])


@scenario("daemonset")
async def revision_deleted(world: World) -> None:
    await running(world, 1)
    (revision,) = world.all(CONTROLLER_REVISIONS)
    uid = revision["metadata"]["uid"]
    await world.delete(CONTROLLER_REVISIONS, revision["metadata"]["name"])
    await world.until(
        "there is another",
        lambda: {uid} != {each["metadata"]["uid"] for each in world.all(CONTROLLER_REVISIONS)} != set(),
    )
    await serves(world, 1)


# Owners


@scenario("daemonset")
async def deleted_in_background(world: World) -> None:
    await running(world, 2)
    await world.delete(DS, AGENT)
    await all_gone(world)


@scenario("daemonset")
async def deleted_in_foreground(world: World) -> None:
    await running(world, 2)
    await world.delete(DS, AGENT, cascade="Foreground")
    await all_gone(world)


async def all_gone(world: World) -> None:
    await world.until_gone(DS, AGENT)
    await world.until("its pods are gone", lambda: not world.pods())
    await world.until("its history is gone", lambda: not world.all(CONTROLLER_REVISIONS))


@scenario("daemonset")
async def orphaned(world: World) -> None:
    await running(world, 2)
    await world.delete(DS, AGENT, cascade="Orphan")
    await world.until_gone(DS, AGENT)
    await world.until("nobody owns the pods", lambda: not any(owners(world, pod) for pod in world.pods()))


@scenario("daemonset")
async def orphans_adopted_by_a_successor(world: World) -> None:
    pods = await running(world, 2)
    before = {pod["metadata"]["uid"] for pod in pods}
    await world.delete(DS, AGENT, cascade="Orphan")
    await world.until_gone(DS, AGENT)
    await world.until("nobody owns the pods", lambda: not any(owners(world, pod) for pod in world.pods()))
    await world.create(DS, daemon(world))
    await serves(world, 2)
    assert {pod["metadata"]["uid"] for pod in world.pods()} == before


# Refusals and haste


@scenario("daemonset")
async def quota_refuses_then_allows(world: World) -> None:
    await world.refuse_pods(1)
    for suffix in "abc":
        await node(world, suffix)
    await world.create(DS, daemon(world))
    await world.until_event("FailedCreate", times=2)
    await world.allow_pods()
    await serves(world, 3)


@scenario("daemonset")
async def admission_refuses(world: World) -> None:
    await node(world, "a")
    await world.create(DS, daemon(world, pod={"priorityClassName": "nobody-has-made-it"}))
    await world.until_event("FailedCreate", times=2)
    await world.until_status(DS, AGENT, desiredNumberScheduled=1, numberUnavailable=1)


@scenario("daemonset")
async def namespace_terminating(world: World) -> None:
    pods = await running(world, 2)
    await world.terminate_namespace()
    await world.lose(pods[0])
    await world.until_status(DS, AGENT, currentNumberScheduled=1, numberUnavailable=1)


@scenario("daemonset", ignoring={"ControllerRevision.metadata.annotations": "those at a moment of the storm"})
async def conflict_storm(world: World) -> None:
    await running(world, 2)
    async with world.storm(DS, AGENT):
        await change_image(world, "registry.example/main:2")
        await serves(world, 2)
        await node(world, "c")
        await serves(world, 3)
