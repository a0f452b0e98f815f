"""What is to be done about all nodes of a DaemonSet at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.workloads.daemonset.node_pods import Revision, decide
from podlife.workloads.daemonset.placement import Fit
from podlife.workloads.views import Pod

__all__ = ["Plan", "plan_nodes"]


@dataclass(slots=True)
class Plan:
    create_on: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    # Pods that have ended, with the nodes they are on.
    failed: list[tuple[str, Pod]] = field(default_factory=list)
    succeeded: list[tuple[str, Pod]] = field(default_factory=list)


def plan_nodes(
    pods: Mapping[str, Sequence[Pod]], fits: Mapping[str, Fit], revision: Revision, now: datetime
) -> Plan:
    """`pods` by node; `fits` of all nodes there are."""
    plan = Plan()
    for name, fit in fits.items():
        change = decide(fit, pods.get(name, ()), revision, now)
        if change is None:
            continue
        if change.needs_pod:
            plan.create_on.append(name)
        plan.delete += change.delete
        plan.failed += [(name, pod) for pod in change.failed]
        plan.succeeded += [(name, pod) for pod in change.succeeded]
    # No scheduler will ever bind them, and no collector looks at what is on no node.
    plan.delete += [
        pod
        for name, found in pods.items()
        if name not in fits
        for pod in found
        if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
    ]
    return plan
