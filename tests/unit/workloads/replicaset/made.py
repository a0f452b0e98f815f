"""Pods and ReplicaSets as a controller sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podlife.api.codec import format_time
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.views import WorkloadPod
from tests.kit import objects

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(
    name: str = "web-a",
    *,
    labels: dict[str, str] | None = None,
    phase: str = "Running",
    ready_for: float | None = None,
    is_going: bool = False,
    **rest: Any,
) -> WorkloadPod:
    """`ready_for`: ready since so many seconds before NOW."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", **rest}
    metadata["labels"] = {"app": "web"} if labels is None else labels
    if is_going:
        metadata["deletionTimestamp"] = format_time(NOW)
    status: dict[str, Any] = {"phase": phase}
    if ready_for is not None:
        status["conditions"] = [objects.condition("Ready", since=NOW - timedelta(seconds=ready_for))]
    return msgspec.convert({"metadata": metadata, "status": status}, WorkloadPod)


def replica_set(replicas: int = 1, *, status: dict[str, Any] | None = None, **spec: Any) -> ReplicaSet:
    metadata = {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 3}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    selector = {"matchLabels": {"app": "web"}}
    made = {"replicas": replicas, "selector": selector, "template": template, **spec}
    return msgspec.convert({"metadata": metadata, "spec": made, "status": status or {}}, ReplicaSet)
