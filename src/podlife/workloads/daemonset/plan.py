"""Pods to create and delete on all nodes of a DaemonSet. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.workloads.daemonset.node_pods import DaemonRevision, decide
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.views import WorkloadPod


@dataclass(slots=True)
class DaemonSetPlan:
    create_on: list[str] = field(default_factory=list)
    delete: list[WorkloadPod] = field(default_factory=list)
    # Pods that have ended, with the nodes they are on.
    failed: list[tuple[str, WorkloadPod]] = field(default_factory=list)
    succeeded: list[tuple[str, WorkloadPod]] = field(default_factory=list)


def plan_nodes(
    pods: Mapping[str, Sequence[WorkloadPod]],
    fits: Mapping[str, NodeFit],
    revision: DaemonRevision,
    now: datetime,
) -> DaemonSetPlan:
    """`pods` by node; `fits` of all nodes there are."""
    plan = DaemonSetPlan()
    for name, fit in fits.items():
        change = decide(fit, pods.get(name, ()), revision, now)
        if change is None:
            continue
        if change.needs_pod:
            plan.create_on.append(name)
        plan.delete += change.delete
        plan.failed += [(name, pod) for pod in change.failed]
        plan.succeeded += [(name, pod) for pod in change.succeeded]
    # The scheduler will never bind them, and nothing else deletes them.
    plan.delete += [
        pod
        for name, found in pods.items()
        if name not in fits
        for pod in found
        if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
    ]
    return plan
