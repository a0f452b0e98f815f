"""Small Deployments and ReplicaSets for the tests of what is decided about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podlife.workloads.deployment.annotations import DESIRED_REPLICAS, MAX_REPLICAS, REVISION
from podlife.workloads.deployment.rollout import Rollout, RolloutStep
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.views import ReplicaSet
from tests.kit import objects

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def template(image: str = "i:1", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web", **labels}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def deployment(
    replicas: int = 10,
    *,
    surge: int | str = 0,
    unavailable: int | str = 0,
    strategy: str = "RollingUpdate",
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Deployment:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    about = {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1, "resourceVersion": "7"}
    wanted = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        "strategy": {"type": strategy, "rollingUpdate": limits},
        **spec,
    }
    made = {"metadata": {**about, **(metadata or {})}, "spec": wanted, "status": status or {}}
    return objects.read(made, Deployment)


def replica_set(
    name: str = "new",
    replicas: int = 0,
    *,
    available: int | None = None,
    age_seconds: int = 0,
    revision: str | None = None,
    marks: tuple[int, int] | None = None,
    image: str = "i:1",
    status: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
) -> ReplicaSet:
    """`marks` are the sizes it was scaled for; without `available` all of its pods are."""
    noted = dict(annotations or {})
    if revision is not None:
        noted[REVISION] = revision
    if marks is not None:
        noted |= {DESIRED_REPLICAS: str(marks[0]), MAX_REPLICAS: str(marks[1])}
    counted = replicas if available is None else available
    created = (NOW - timedelta(seconds=age_seconds)).isoformat()
    counts = {"replicas": replicas, "availableReplicas": counted, "observedGeneration": 1, **(status or {})}
    made = {
        "metadata": {"name": name, "annotations": noted, "creationTimestamp": created, "generation": 1},
        "spec": {"replicas": replicas, "template": template(image, **{"pod-template-hash": name})},
        "status": counts,
    }
    return objects.read(objects.stored(made), ReplicaSet)


def rollout(deployment: Deployment, new: ReplicaSet | None, *old: ReplicaSet, **rest: Any) -> Rollout:
    return Rollout(deployment, new, old, **rest)


def sizes(step: RolloutStep | None) -> dict[str, int]:
    """To which sizes ReplicaSets are scaled, by name."""
    return {} if step is None else {each.replica_set.metadata.name: each.replicas for each in step.scale}
