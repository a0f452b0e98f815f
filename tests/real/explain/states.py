"""Pods as nodes and schedulers leave them on a real server, the cause that has to be found, and what has to have become
of them once kubectl ran what was printed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    Client,
    Ref,
)
from podlife.errors import NotFoundError

Object = dict[str, Any]
Found = Callable[[Client, str], Awaitable[object]]
OLD = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class State:
    """`has_become` is asked with the name of the pod, which is the name of everything else there is for it."""

    name: str
    cause: str
    has_become: Found
    spec: Object = field(default_factory=dict)
    status: Object = field(default_factory=dict)
    metadata: Object = field(default_factory=dict)
    node: Object | None = None
    # Of the workload that owns the pod, if one does.
    is_deployed: bool = False
    is_deleted: bool = False
    values: dict[str, str] = field(default_factory=dict)


def container(image: str = "bad", **fields: Any) -> Object:
    return {"containers": [{"name": "main", "image": image, **fields}]}


def waiting(reason: str, message: str = "", **fields: Any) -> Object:
    return {"phase": "Pending", "containerStatuses": [status(reason, message, **fields)]}


def status(reason: str, message: str, **fields: Any) -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "name": "main",
        "image": "bad",
        "imageID": "",
        "ready": False,
        "restartCount": 4,
        "state": state,
        **fields,
    }


def ended(reason: str, code: int) -> Object:
    return {
        "lastState": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": OLD, "startedAt": OLD}}
    }


def unschedulable(message: str) -> Object:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": OLD}
    return {"phase": "Pending", "conditions": [{**told, "message": f"0/1 nodes are available: 1 {message}."}]}


def node(ready: str = "True", **spec: Any) -> Object:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": OLD, "lastHeartbeatTime": OLD}
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"spec": spec, "status": {"conditions": [condition], "capacity": room, "allocatable": room}}


def on(ref: Ref, look: Callable[[Object], object], namespace: str = "default") -> Found:
    async def has_become(client: Client, name: str) -> object:
        return look(await client.get(ref, name, namespace if ref.namespaced else ""))

    return has_become


async def is_gone(client: Client, name: str) -> object:
    try:
        await client.get(PODS, name, "default")
    except NotFoundError:
        return True
    return False


async def has_volume(client: Client, name: str) -> object:
    volumes = (await client.list(PERSISTENT_VOLUMES)).items
    return [each for each in volumes if (each["spec"].get("claimRef") or {}).get("name") == name]


def image_is_good(obj: Object) -> object:
    return obj["spec"]["containers"][0]["image"] == "good:1"


GOOD = {"IMAGE": "good:1"}

STATES = (
    State("held", "finalizer", is_gone, metadata={"finalizers": ["example.com/backup"]}, is_deleted=True),
    State("orphan", "node-gone", is_gone, spec={"nodeName": "nowhere"}, is_deleted=True),
    State(
        "dead-node", "taint-missing",
        on(NODES, lambda each: any("out-of-service" in taint["key"] for taint in each["spec"]["taints"])),
        node=node("Unknown"), is_deleted=True,
    ),
    State(
        "in-its-grace", "grace", on(PODS, lambda each: each["metadata"]["deletionGracePeriodSeconds"] == 1),
        spec={"terminationGracePeriodSeconds": 7200}, node=node(), is_deleted=True,
    ),
    State(
        "gated", "scheduling-gate", on(PODS, lambda each: not each["spec"].get("schedulingGates")),
        spec={"schedulingGates": [{"name": "example.com/quota"}]},
    ),
    State(
        "no-scheduler", "no-scheduler", on(PODS, lambda each: each["spec"].get("nodeName")),
        spec={"schedulerName": "mine", "nodeSelector": {"only": "this"}},
        node={**node(), "metadata": {"labels": {"only": "this"}}},
    ),
    State(
        "cordon", "cordoned", on(NODES, lambda each: not each["spec"].get("unschedulable")),
        status=unschedulable("node(s) were unschedulable"), node=node(unschedulable=True), spec={"nodeName": ""},
    ),
    State(
        "taint", "untolerated-taint", on(NODES, lambda each: not each["spec"].get("taints")),
        status=unschedulable("node(s) had untolerated taint {example.com/gpu: yes}"), spec={"nodeName": ""},
        node=node(taints=[{"key": "example.com/gpu", "value": "yes", "effect": "NoSchedule"}]),
    ),
    State(
        "selector", "node-selector", on(NODES, lambda each: each["metadata"]["labels"].get("disk") == "ssd"),
        spec={"nodeSelector": {"disk": "ssd"}, "nodeName": ""}, node=node(),
        status=unschedulable("node(s) didn't match Pod's node affinity/selector"),
    ),
    State(
        "too-large", "insufficient-resources",
        on(PODS, lambda each: each["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"),
        spec=container(resources={"requests": {"cpu": "500"}}), status=unschedulable("Insufficient cpu"),
        values={"AMOUNT": "1"},
    ),
    State(
        "too-large-deployed", "insufficient-resources",
        on(
            DEPLOYMENTS,
            lambda each: each["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1",
        ),
        spec=container(resources={"requests": {"cpu": "500"}}), status=unschedulable("Insufficient cpu"),
        values={"AMOUNT": "1"}, is_deployed=True,
    ),
    State("image", "image", on(PODS, image_is_good), node=node(), status=waiting("ErrImagePull"), values=GOOD),
    State(
        "image-deployed", "image", on(DEPLOYMENTS, lambda each: image_is_good(each["spec"]["template"])), node=node(),
        status=waiting("ImagePullBackOff"), values=GOOD, is_deployed=True,
    ),
    State(
        "crashing", "crash-loop", on(PODS, image_is_good), node=node(),
        status=waiting("CrashLoopBackOff", **ended("Error", 3)), values=GOOD,
    ),
    State(
        "oom", "out-of-memory",
        on(PODS, lambda each: each["spec"]["containers"][0]["resources"]["limits"]["memory"] == "128Mi"),
        node=node(), values={"AMOUNT": "128Mi"}, status=waiting("CrashLoopBackOff", **ended("OOMKilled", 137)),
        spec=container(resources={"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}),
    ),
    State(
        "no-config-map", "configuration", on(CONFIG_MAPS, lambda each: each["data"] == {"level": "1"}), node=node(),
        status=waiting("CreateContainerConfigError", 'configmap "no-config-map" not found'), values={"VALUE": "1"},
        spec=container(
            env=[{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "no-config-map", "key": "level"}}}]
        ),
    ),
    State(
        "no-secret", "configuration", on(SECRETS, lambda each: each["type"] == "Opaque"), node=node(),
        status=waiting("CreateContainerConfigError", 'secret "no-secret" not found'),
    ),
    State(
        "no-claim", "claim-missing", on(PERSISTENT_VOLUME_CLAIMS, lambda each: each["spec"]), node=node(),
        spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "no-claim"}}]},
        status={**waiting("ContainerCreating"), "startTime": OLD}, values={"SIZE": "1Gi"},
    ),
    State(
        "unbound", "claim-unbound", has_volume, node=node(),
        spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "unbound"}}]},
        status={**waiting("ContainerCreating"), "startTime": OLD}, values={"PATH": "/data"},
    ),
    State(
        "gate", "readiness-gate",
        on(PODS, lambda each: ("lb", "True") in [(c["type"], c["status"]) for c in each["status"]["conditions"]]),
        spec={"readinessGates": [{"conditionType": "lb"}]}, node=node(),
        status={
            "phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": OLD}],
            "containerStatuses": [
                {**status("", ""), "ready": True, "state": {"running": {"startedAt": OLD}}},
            ],
        },
    ),
    State("evicted", "left-behind", is_gone, status={"phase": "Failed", "reason": "Evicted"}, node=node()),
    State(
        "kept", "protected", on(PODS, lambda each: not each["metadata"].get("annotations")), node=node(),
        status={"phase": "Succeeded"}, metadata={"annotations": {"podlife.dev/keep-until": "2999-01-01T00:00:00Z"}},
    ),
)  # fmt: skip
