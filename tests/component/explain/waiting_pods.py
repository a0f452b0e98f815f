"""Pods that no node has, or whose node cannot start them."""

from __future__ import annotations

from typing import Any

from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
)
from podlife.testing import Behaviour, Cluster
from tests.component.explain.situation import (
    Make,
    Object,
    Situation,
    create,
    created,
    is_ready,
    runs,
    with_spec,
)
from tests.component.explain.volumes import with_volumes
from tests.component.stories.objects import pod, workload

GOOD = {"IMAGE": "good"}


async def cordoned(cluster: Cluster) -> None:
    await cluster.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await create(cluster, pod(node=""))


async def tainted(cluster: Cluster) -> None:
    taints = [{"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}]
    await cluster.client.patch(NODES, "n1", {"spec": {"taints": taints}})
    await create(cluster, pod(node=""))


async def forgotten_taint(cluster: Cluster) -> None:
    """Nobody looks after nodes here: what was put there once is not taken off."""
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
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
    ports = [{"containerPort": 80, "hostPort": 8080}]
    await create(cluster, pod("first", ports=ports))
    await create(cluster, pod(node="", ports=ports))


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


WAITING_PODS = (
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
    Situation("ready, and tainted as if not", "untolerated-taint", forgotten_taint, is_ready, ("scheduler",)),
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
        "cannot be created", "container-error", created(pod(image="bad"), Behaviour(refusal="no such device")),
        is_ready, values=GOOD,
    ),
    Situation(
        "cannot be started", "container-error", created(pod(image="bad"), Behaviour(start_error="exec: not found")),
        is_ready, values=GOOD,
    ),
)  # fmt: skip
