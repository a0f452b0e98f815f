"""The catalogue: situations in which a pod is stuck or slow, each made for real in a cluster, with the cause that has to be
found and what has to become true once the command that is printed has been typed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SECRETS,
    DeleteOptions,
)
from podlife.errors import NotFoundError, UnreachableError
from podlife.testing import Behaviour, Cluster, ExecResult
from tests.component.explain.volumes import with_volumes
from tests.component.stories.objects import OUT_OF_SERVICE, condition, pod, workload

Object = dict[str, Any]
Make = Callable[[Cluster], Awaitable[None]]
Holds = Callable[[Cluster], Awaitable[bool]]

NODE_HEALTH = ("node-lifecycle", "taint-eviction")
FOR_EVER = [{"operator": "Exists"}]


@dataclass(frozen=True)
class Situation:
    """`values` are what a person fills in; `rounds` how often something is in the way."""

    name: str
    cause: str
    make: Make
    is_unblocked: Holds
    controllers: tuple[str, ...] = ()
    nodes: int = 1
    values: dict[str, str] = field(default_factory=dict)
    rounds: int = 1
    is_stuck: bool = True
    pod: str = "web"
    # Who has to be named as acting next, if anybody.
    acts: str = ""
    # False where only time tells whether it is.
    is_checked_before: bool = True


# What becomes of it


async def found(cluster: Cluster, name: str = "web") -> Object | None:
    try:
        return await cluster.client.get(PODS, name, "default")
    except NotFoundError:
        return None


async def is_gone(cluster: Cluster) -> bool:
    return await found(cluster) is None


async def is_ready(cluster: Cluster) -> bool:
    obj = await found(cluster)
    return obj is not None and condition(obj, "Ready").get("status") == "True"


async def has_node(cluster: Cluster) -> bool:
    obj = await found(cluster)
    return obj is not None and bool(obj["spec"].get("nodeName"))


async def runs(cluster: Cluster) -> bool:
    return ("web", "main") in {
        (each.pod, each.name) for node in cluster.nodes.values() for each in node.containers
    }


# How it is made


async def create(cluster: Cluster, obj: Object) -> None:
    await cluster.client.create(PODS, obj, "default")
    await cluster.settled()


async def delete(cluster: Cluster, name: str = "web") -> None:
    uid = (await cluster.client.get(PODS, name, "default"))["metadata"]["uid"]
    await cluster.client.delete(PODS, name, "default", options=DeleteOptions(uid=uid))


def with_metadata(obj: Object, **fields: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def with_spec(obj: Object, **fields: Any) -> Object:
    return {**obj, "spec": {**obj["spec"], **fields}}


def created(
    obj: Object, behaviour: Behaviour | None = None, *, image: str = "bad", seconds: float = 60
) -> Make:
    """The pod, and a while after it."""

    async def make(cluster: Cluster) -> None:
        if behaviour is not None:
            cluster.behave(behaviour, image=image)
        await cluster.client.create(PODS, obj, "default")
        await cluster.advance(seconds=seconds)

    return make


async def held_by_one(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), finalizers=["example.com/backup"]))
    await delete(cluster)
    await cluster.advance(minutes=2)


async def held_by_two(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), finalizers=["example.com/backup", "example.com/dns"]))
    await delete(cluster)
    await cluster.advance(minutes=2)


async def node_removed(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").remove()
    await cluster.advance(seconds=5)


async def deleted_and_node_removed(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await delete(cluster)
    await cluster.node("n1").remove()
    await cluster.advance(minutes=2)


async def node_down(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").power_off()
    await cluster.advance(seconds=75)


async def node_down_for_one_that_bears_all(cluster: Cluster) -> None:
    await create(cluster, with_spec(pod(), tolerations=FOR_EVER))
    await cluster.node("n1").power_off()
    await cluster.advance(minutes=10)


async def deleted_on_a_dead_node(cluster: Cluster) -> None:
    await node_down(cluster)
    await delete(cluster)
    await cluster.advance(minutes=2)


async def out_of_service_and_no_collector(cluster: Cluster) -> None:
    await deleted_on_a_dead_node(cluster)
    node = await cluster.client.get(NODES, "n1")
    taints = [*node["spec"].get("taints", []), OUT_OF_SERVICE]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await cluster.advance(minutes=1)


async def agent_silent(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await delete(cluster)
    await cluster.advance(minutes=1)


async def agent_silent_and_nobody_deleted(cluster: Cluster) -> None:
    await create(cluster, pod())
    await cluster.node("n1").stop()
    await cluster.advance(minutes=1)


async def ignores_term(cluster: Cluster) -> None:
    cluster.behave(Behaviour(stop_seconds=None))
    await create(cluster, pod(grace=900))
    await delete(cluster)
    await cluster.advance(minutes=1)


async def hook_runs(cluster: Cluster) -> None:
    cluster.behave(Behaviour(stop_seconds=None))
    await create(cluster, pod(grace=900, lifecycle={"preStop": {"sleep": {"seconds": 600}}}))
    await delete(cluster)
    await cluster.advance(minutes=1)


async def last_word_refused(cluster: Cluster) -> None:
    """Something between agent and server lets no deletion of the agent's through, as a broken webhook does."""
    await create(cluster, pod())

    async def refuse(request: Any, onwards: Any) -> Any:
        if request.method == "DELETE":
            raise UnreachableError("no deletions")
        return await onwards(request)

    cluster.node("n1").way.disturb = refuse
    await delete(cluster)
    await cluster.advance(minutes=3)


async def cordoned(cluster: Cluster) -> None:
    await cluster.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await create(cluster, pod(node=""))


async def tainted(cluster: Cluster) -> None:
    taints = [{"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await create(cluster, pod(node=""))


def wanting(amount: str) -> Object:
    return {"resources": {"requests": {"cpu": amount}}}


async def deployed(cluster: Cluster, **container: Any) -> None:
    obj = workload("shop", 1)
    obj["spec"]["template"]["spec"]["containers"][0].update(container)
    await cluster.client.create(DEPLOYMENTS, obj, "default")
    await cluster.advance(seconds=60)


async def deployment_too_large(cluster: Cluster) -> None:
    await deployed(cluster, **wanting("500"))


async def deployment_with_a_bad_image(cluster: Cluster) -> None:
    cluster.node("n1").machine.image_errors["bad:latest"] = "not found"
    await deployed(cluster, image="bad")


async def a_shop_is_ready(cluster: Cluster) -> bool:
    status = (await cluster.client.get(DEPLOYMENTS, "shop", "default")).get("status") or {}
    return bool(status.get("readyReplicas") == 1 and status.get("updatedReplicas") == 1)


async def port_taken(cluster: Cluster) -> None:
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    await create(cluster, pod("first", **ports))
    await create(cluster, pod(node="", **ports))


def bad_image(*, init: bool = False) -> Make:
    async def make(cluster: Cluster) -> None:
        cluster.node("n1").machine.image_errors["bad:latest"] = "not found"
        cluster.behave(Behaviour(run_seconds=1), container="init")
        obj = (
            pod(image="bad")
            if not init
            else with_spec(pod(), initContainers=[{"name": "init", "image": "bad"}])
        )
        await cluster.client.create(PODS, obj, "default")
        await cluster.advance(seconds=60)

    return make


def from_key(kind: str, name: str, key: str) -> Object:
    return {"env": [{"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key}}}]}


async def key_missing(cluster: Cluster) -> None:
    await cluster.client.create(
        CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"other": "x"}}, "default"
    )
    await created(pod(**from_key("configMap", "settings", "level")))(cluster)


async def secret_key_missing(cluster: Cluster) -> None:
    await cluster.client.create(
        SECRETS, {"metadata": {"name": "login"}, "stringData": {"user": "x"}}, "default"
    )
    await created(pod(**from_key("secret", "login", "password")))(cluster)


def init_container(behaviour: Behaviour) -> Make:
    obj = with_spec(pod(), initContainers=[{"name": "init", "image": "bad"}])

    async def make(cluster: Cluster) -> None:
        cluster.behave(behaviour, image="bad")
        cluster.behave(Behaviour(run_seconds=1), image="good")
        await cluster.client.create(PODS, obj, "default")
        await cluster.advance(minutes=3)

    return make


async def memory_short(cluster: Cluster) -> None:
    cluster.behave(Behaviour(run_seconds=2, exit_code=137, out_of_memory=True), image="bad")
    resources = {"resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}}
    await cluster.client.create(PODS, pod(image="bad", **resources), "default")
    await cluster.advance(minutes=3)
    # The next start has the memory that it needs.
    cluster.behave(Behaviour(), image="bad")


def probed(kind: str, period: int = 5) -> Make:
    probe = {"exec": {"command": ["check"]}, "periodSeconds": period, "failureThreshold": 1000}
    says = {"bad": 1, "good": 0}

    async def make(cluster: Cluster) -> None:
        for image, code in says.items():
            answer = ExecResult(code, b"", b"")
            cluster.behave(Behaviour(exec=lambda _command, answer=answer: answer), image=image)
        await cluster.client.create(PODS, pod(image="bad", **{kind: probe}), "default")
        await cluster.advance(minutes=2)

    return make


async def to_be_evicted(cluster: Cluster) -> None:
    toleration = {
        "key": "example.com/repair",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    await create(cluster, with_spec(pod(), tolerations=[toleration]))
    taints = [{"key": "example.com/repair", "effect": "NoExecute"}]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await cluster.advance(minutes=1)


async def is_left_alone(cluster: Cluster) -> bool:
    await cluster.advance(minutes=10)
    obj = await found(cluster)
    return obj is not None and "deletionTimestamp" not in obj["metadata"]


async def job_not_counted(cluster: Cluster) -> None:
    cluster.behave(Behaviour(run_seconds=20))
    template = {"spec": {**pod(node="")["spec"], "restartPolicy": "Never"}}
    await cluster.client.create(
        JOBS, {"metadata": {"name": "once"}, "spec": {"template": template}}, "default"
    )
    await cluster.advance(seconds=10)
    await cluster.controllers.kill("job")
    await cluster.advance(minutes=2)


async def nothing_holds_it(cluster: Cluster) -> bool:
    pods = (await cluster.client.list(PODS, "default")).items
    return not any(each["metadata"].get("finalizers") for each in pods)


async def kept_until(cluster: Cluster) -> None:
    noted = {"podlife.dev/keep-until": "2031-01-01T00:00:00Z"}
    cluster.behave(Behaviour(run_seconds=1))
    await create(cluster, with_metadata(with_spec(pod(), restartPolicy="Never"), annotations=noted))


async def is_not_kept(cluster: Cluster) -> bool:
    obj = await found(cluster)
    return obj is not None and "podlife.dev/keep-until" not in (obj["metadata"].get("annotations") or {})


async def budget_allows_nobody(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), labels={"app": "web"}))
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await cluster.client.create(POD_DISRUPTION_BUDGETS, budget, "default")
    # No controller of ours counts for budgets: this is what it would have counted.
    counted = {
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    }
    await cluster.client.patch(POD_DISRUPTION_BUDGETS, "all", counted, "default", subresource="status")
    await cluster.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await cluster.advance(minutes=1)


async def not_picked_up(cluster: Cluster) -> None:
    """The agent renews its lease and sees no pod."""
    node = cluster.node("n1")

    async def deaf(request: Any, onwards: Any) -> Any:
        if "/pods" in request.path:
            raise UnreachableError("no pods")
        return await onwards(request)

    node.way.disturb = deaf
    node.way.break_watches()
    await cluster.advance(seconds=30)
    await cluster.client.create(PODS, pod(), "default")
    await cluster.advance(minutes=1)


async def volume_not_there(cluster: Cluster) -> None:
    await with_volumes(cluster, "n1")
    volume = {"name": "v", "configMap": {"name": "page"}}
    await cluster.client.create(PODS, with_spec(pod(), volumes=[volume]), "default")
    await cluster.advance(minutes=1)


async def claimed(cluster: Cluster) -> None:
    await with_volumes(cluster, "n1")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    await cluster.client.create(PODS, with_spec(pod(), volumes=[volume]), "default")
    await cluster.advance(minutes=1)


async def claim_not_there(cluster: Cluster) -> None:
    volume = {
        "metadata": {"name": "waiting"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data"},
            "hostPath": {"path": "/data"},
        },
    }
    await cluster.client.create(PERSISTENT_VOLUMES, volume)
    await claimed(cluster)


async def claim_not_bound(cluster: Cluster) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.client.create(PERSISTENT_VOLUME_CLAIMS, claim, "default")
    await claimed(cluster)


def gated(**status: Any) -> Object:
    return with_spec(pod(), readinessGates=[{"conditionType": "example.com/lb"}])


GOOD = {"IMAGE": "good"}
COLLECTOR = ("pod-garbage-collector",)

CATALOGUE: Iterable[Situation] = (
    # Deleted, and still there.
    Situation("a finalizer", "finalizer", held_by_one, is_gone),
    Situation("two finalizers", "finalizer", held_by_two, is_gone, rounds=2),
    Situation("deleted, node removed, no collector", "node-gone", deleted_and_node_removed, is_gone, acts="pod GC"),
    Situation("node removed, quarantine", "node-gone", node_removed, is_gone, COLLECTOR, acts="pod GC"),
    Situation(
        "deleted on a dead node", "taint-missing", deleted_on_a_dead_node, is_gone, (*NODE_HEALTH, *COLLECTOR), nodes=2
    ),
    Situation(
        "out of service, no collector", "out-of-service", out_of_service_and_no_collector, is_gone, NODE_HEALTH,
        nodes=2, acts="pod GC",
    ),
    Situation("deleted, agent silent, node not marked", "kubelet-silent", agent_silent, is_gone, acts="node monitor"),
    Situation("ignores TERM inside its grace", "grace", ignores_term, is_gone, is_stuck=False),
    Situation("preStop inside its grace", "pre-stop", hook_runs, is_gone, is_stuck=False),
    Situation("the agent's last word is refused", "agent-does-not-end-it", last_word_refused, is_gone),
    # On a node that is not well.
    Situation(
        "node dead, not deleted yet", "node-not-ready", node_down, is_gone, (*NODE_HEALTH, *COLLECTOR), nodes=2,
        acts="taint eviction",
    ),
    Situation(
        "node dead, pod bears every taint", "node-not-ready", node_down_for_one_that_bears_all, is_gone,
        (*NODE_HEALTH, *COLLECTOR), nodes=2, acts="taint eviction",
    ),
    Situation("agent silent, not deleted", "kubelet-silent", agent_silent_and_nobody_deleted, is_gone),
    Situation(
        "to be evicted later", "taint-eviction", to_be_evicted, is_left_alone, NODE_HEALTH, is_stuck=False, is_checked_before=False,
        acts="taint eviction",
    ),
    Situation("agent sees no pods", "not-picked-up", not_picked_up, is_gone),
    # No node for it.
    Situation("every node cordoned", "cordoned", cordoned, is_ready, ("scheduler",), acts="the scheduler"),
    Situation("every node tainted", "untolerated-taint", tainted, is_ready, ("scheduler",)),
    Situation(
        "no node has the labels", "node-selector",
        created(with_spec(pod(node=""), nodeSelector={"disk": "ssd"})), is_ready, ("scheduler",),
    ),
    Situation(
        "too large", "insufficient-resources", created(pod(node="", **wanting("500"))), is_ready, ("scheduler",),
        values={"AMOUNT": "1"},
    ),
    Situation(
        "a Deployment's pod too large", "insufficient-resources", deployment_too_large, a_shop_is_ready,
        ("scheduler", "deployment", "replicaset"), values={"AMOUNT": "1"}, pod="shop-*",
    ),
    Situation("host port taken", "host-port", port_taken, is_ready, ("scheduler",)),
    Situation(
        "gate", "scheduling-gate", created(with_spec(pod(node=""), schedulingGates=[{"name": "example.com/quota"}])),
        is_ready, ("scheduler",),
    ),
    Situation(
        "a scheduler that does not run", "no-scheduler", created(with_spec(pod(node=""), schedulerName="mine")),
        is_ready, ("scheduler",),
    ),
    # On its node, and not started.
    Situation("image not found", "image", bad_image(), is_ready, values=GOOD),
    Situation("image of an init container", "image", bad_image(init=True), runs, values=GOOD),
    Situation("no name of an image", "image", created(pod(image="Bad//name")), is_ready, values=GOOD),
    Situation(
        "image of a Deployment", "image", deployment_with_a_bad_image, a_shop_is_ready,
        ("scheduler", "deployment", "replicaset"), values=GOOD, pod="shop-*",
    ),
    Situation(
        "ConfigMap missing", "configuration", created(pod(**from_key("configMap", "settings", "level"))), is_ready,
        values={"VALUE": "1"},
    ),
    Situation(
        "Secret missing", "configuration", created(pod(**from_key("secret", "login", "password"))), is_ready,
        values={"VALUE": "1"},
    ),
    Situation("key missing", "configuration", key_missing, is_ready, values={"VALUE": "1"}),
    Situation("key of a Secret missing", "configuration", secret_key_missing, is_ready, values={"VALUE": "1"}),
    Situation("ConfigMap of a volume missing", "volume", volume_not_there, is_ready),
    Situation("claim missing", "claim-missing", claim_not_there, is_ready, values={"SIZE": "1Gi"}),
    Situation("claim not bound", "claim-unbound", claim_not_bound, is_ready, values={"PATH": "/data"}),
    Situation(
        "cannot be created", "container-error", created(pod(image="bad"), Behaviour(refusal="no such device")), is_ready,
        values=GOOD,
    ),
    Situation(
        "cannot be started", "container-error", created(pod(image="bad"), Behaviour(start_error="exec: not found")),
        is_ready, values=GOOD,
    ),
    # Started, and not well.
    Situation(
        "ends again and again", "crash-loop",
        created(pod(image="bad"), Behaviour(run_seconds=1, exit_code=3), seconds=180), is_ready, values=GOOD,
        acts="the node's agent",
    ),
    Situation(
        "init container ends again and again", "crash-loop", init_container(Behaviour(run_seconds=1, exit_code=3)), runs,
        values=GOOD,
    ),
    Situation("init container does not end", "init-container", init_container(Behaviour()), is_gone),
    Situation("out of memory", "out-of-memory", memory_short, is_ready, values={"AMOUNT": "128Mi"}),
    Situation("readiness gate", "readiness-gate", created(gated()), is_ready),
    Situation("readiness probe fails", "readiness-probe", probed("readinessProbe"), is_ready, values=GOOD),
    Situation("startup probe fails", "startup-probe", probed("startupProbe"), is_ready, values=GOOD),
    # Ended, and still there; or to be moved and may not.
    Situation(
        "refused by its node", "left-behind", created(with_spec(pod(), nodeSelector={"disk": "ssd"})), is_gone,
        acts="pod GC",
    ),
    Situation(
        "a Job that does not count", "job-not-counted", job_not_counted, nothing_holds_it, ("scheduler", "job"),
        pod="once-*",
    ),
    Situation("kept by a note", "protected", kept_until, is_not_kept, is_stuck=False),
    Situation("a budget that allows nobody", "disruption-budget", budget_allows_nobody, is_gone),
)  # fmt: skip


async def name_of(cluster: Cluster, situation: Situation) -> str:
    if not situation.pod.endswith("*"):
        return situation.pod
    pods = (await cluster.client.list(PODS, "default")).items
    prefix = situation.pod.removesuffix("*")
    return next(str(each["metadata"]["name"]) for each in pods if each["metadata"]["name"].startswith(prefix))


__all__ = ["CATALOGUE", "Situation", "name_of"]
