"""The objects that the stories are about, and what they ask of a pod or node that was seen."""

from __future__ import annotations

from typing import Any

from podlife.client import PODS, DeleteOptions
from podlife.testing import Cluster, ObservedChange
from tests.kit import objects

Object = dict[str, Any]

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def pod(name: str = "web", node: str = "n1", *, grace: int = 30, **container: Any) -> Object:
    bound: Object = {"nodeName": node} if node else {}
    one = {"name": "main", "image": "app", **container}
    return objects.pod(name, one, terminationGracePeriodSeconds=grace, **bound)


async def delete(cluster: Cluster, name: str = "web", *, grace: int | None = None) -> Object:
    options = DeleteOptions(grace_period_seconds=grace)
    answer: Object = await cluster.client.delete(PODS, name, "default", options=options)
    return answer


def running(cluster: Cluster, node: str = "n1") -> list[str]:
    """The pods of which something runs on a node."""
    return [each.pod for each in cluster.node(node).containers]


def workload(name: str, replicas: int, **spec: Any) -> Object:
    """The spec of a Deployment; with a serviceName, of a StatefulSet."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(node="")["spec"]}
    common = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": {**common, **spec}}


def condition(obj: Object, type_: str) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def has_condition(type_: str, status: str) -> Any:
    return lambda change: condition(change.object, type_).get("status") == status


def taints(obj: Object) -> list[str]:
    """As kubectl writes them."""
    found = (obj.get("spec") or {}).get("taints") or ()
    return [f"{each['key'].removeprefix('node.kubernetes.io/')}:{each['effect']}" for each in found]


def has_taint(taint: str) -> Any:
    return lambda change: taint in taints(change.object)


def phase(change: ObservedChange) -> str:
    return str((change.object.get("status") or {}).get("phase") or "")


def who_deleted(cluster: Cluster, name: str) -> list[tuple[str, int | None, bool]]:
    """Who asked for the pod to be deleted and was not refused, with which grace, and whether the UID was named."""
    return [
        (entry.who, entry.json().get("gracePeriodSeconds"), bool(entry.uid))
        for entry in cluster.audit.find(method="DELETE", path=f"/pods/{name}")
        if entry.is_success
    ]
