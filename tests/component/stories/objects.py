"""The objects that the stories are about, and what they ask of a pod or node that was seen."""

from __future__ import annotations

from typing import Any

from podlife.testing import Cluster, ObservedChange

Object = dict[str, Any]

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def pod(name: str = "web", node: str = "n1", *, grace: int = 30, **container: Any) -> Object:
    spec: Object = {
        "containers": [{"name": "main", "image": "app", **container}],
        "terminationGracePeriodSeconds": grace,
    }
    return {"metadata": {"name": name}, "spec": {**spec, **({"nodeName": node} if node else {})}}


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


def who_deleted(cluster: Cluster, name: str, since: float = 0.0) -> list[tuple[str, int | None, bool]]:
    """Who asked for the pod to be deleted and was not refused, with which grace, and whether the UID was named."""
    return [
        (entry.who, entry.json().get("gracePeriodSeconds"), bool(entry.uid))
        for entry in cluster.audit.find(method="DELETE", path=f"/pods/{name}")
        if entry.is_success and entry.at >= since
    ]
