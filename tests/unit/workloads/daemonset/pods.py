"""Pods, nodes and DaemonSets as the controller sees them, for the tests of its decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podlife.podcontrol import OwnedPodCondition
from podlife.workloads.daemonset.pod_template import HASH_LABEL, for_node
from podlife.workloads.daemonset.views import (
    DaemonNode,
    DaemonNodeMetadata,
    DaemonNodeSpec,
    DaemonNodeTaint,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from podlife.workloads.views import (
    Affinity,
    WorkloadMetadata,
    WorkloadPod,
    WorkloadPodSpec,
    WorkloadPodStatus,
)

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
NEW, OLD = "new", "old"


def node(name: str = "n1", *taints: DaemonNodeTaint, **labels: str) -> DaemonNode:
    shown = {key.replace("_", "-"): value for key, value in labels.items()}
    return DaemonNode(DaemonNodeMetadata(name=name, uid=f"uid-{name}", labels=shown), DaemonNodeSpec(taints))


def daemon_set(*, spec: dict[str, Any] | None = None, **rolling: int | str) -> DaemonSet:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": spec or {"containers": []}}
    strategy = DaemonSetUpdateStrategy(rolling_update=RollingUpdateDaemonSet(**rolling))
    metadata = WorkloadMetadata(name="d", namespace="default", uid="uid-d", generation=1)
    return DaemonSet(metadata, DaemonSetSpec(template=template, update_strategy=strategy))


def pod(
    name: str,
    *,
    on: str = "n1",
    revision: str = NEW,
    phase: str = "Running",
    ready_for: float | None = None,
    age: float = 100,
    going: bool = False,
    is_bound: bool = True,
    generation: str = "",
) -> WorkloadPod:
    labels = {HASH_LABEL: revision} | ({"pod-template-generation": generation} if generation else {})
    metadata = WorkloadMetadata(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        labels=labels,
        creation_timestamp=NOW - timedelta(seconds=age),
        deletion_timestamp=NOW if going else None,
    )
    conditions: tuple[OwnedPodCondition, ...] = ()
    if ready_for is not None:
        conditions = (OwnedPodCondition("Ready", "True", NOW - timedelta(seconds=ready_for)),)
    spec = WorkloadPodSpec(node_name=on) if is_bound else WorkloadPodSpec(affinity=_affinity(on))
    return WorkloadPod(metadata, spec, WorkloadPodStatus(phase=phase, conditions=conditions))


def _affinity(name: str) -> Affinity:
    template = for_node({"spec": {}}, name)
    return msgspec.convert(template["spec"]["affinity"], Affinity)


def names(pods: list[WorkloadPod]) -> list[str]:
    return [each.metadata.name for each in pods]
