"""Pods to create and delete on the nodes of a DaemonSet, whatever revision is being rolled out. Pure.

A node that should run the daemon has one pod, any other has none; of several the oldest is kept. An update with surge
keeps the old pod until the new one is available.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.podcontrol import is_active, is_available, is_ready, is_terminal, ready_since
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.pod_template import HASH_LABEL, target_node
from podlife.workloads.views import WorkloadPod


@dataclass(slots=True)
class DaemonSetPlan:
    create_on: list[str] = field(default_factory=list)
    delete: list[WorkloadPod] = field(default_factory=list)
    # Finished pods with their nodes: deleted so that they can be replaced, failed ones with backoff.
    failed: list[tuple[str, WorkloadPod]] = field(default_factory=list)
    succeeded: list[tuple[str, WorkloadPod]] = field(default_factory=list)


def plan_nodes(
    pods: Mapping[str, Sequence[WorkloadPod]],
    fits: Mapping[str, NodeFit],
    revision: DaemonRevision,
    now: datetime,
) -> DaemonSetPlan:
    """`pods` by node; `fits` of all existing nodes."""
    plan = DaemonSetPlan()
    for name, fit in fits.items():
        _plan_node(plan, name, fit, pods.get(name, ()), revision, now)
    # The scheduler will never bind them, and nothing else deletes them.
    plan.delete += [
        pod
        for name, found in pods.items()
        if name not in fits
        for pod in found
        if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
    ]
    return plan


@dataclass(frozen=True, slots=True)
class DaemonRevision:
    """The update revision of a DaemonSet, and what decisions need to know about it."""

    hash: str
    generation: str = ""
    min_ready_seconds: int = 0
    # Two pods may be on a node during its update.
    is_surging: bool = False


def by_node(pods: Iterable[WorkloadPod]) -> dict[str, list[WorkloadPod]]:
    """By current or target node, without finished pods that are being deleted."""
    found: dict[str, list[WorkloadPod]] = {}
    for pod in pods:
        if is_terminal(pod) and pod.metadata.deletion_timestamp is not None:
            continue
        if name := target_node(pod):
            found.setdefault(name, []).append(pod)
    return found


def _plan_node(
    plan: DaemonSetPlan,
    name: str,
    fit: NodeFit,
    pods: Sequence[WorkloadPod],
    revision: DaemonRevision,
    now: datetime,
) -> None:
    if not pods:
        if fit is NodeFit.SHOULD_RUN:
            plan.create_on.append(name)
        return
    if len(pods) == 1 and fit is not NodeFit.MUST_NOT and is_active(pods[0]):
        # Fast path for most nodes.
        return
    present = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    if fit is NodeFit.MUST_NOT:
        plan.delete += present
        return
    for phase, ended in (("Failed", plan.failed), ("Succeeded", plan.succeeded)):
        ended += [(name, pod) for pod in present if pod.status.phase == phase]
    running = oldest_first(pod for pod in present if not is_terminal(pod))
    if not revision.is_surging:
        plan.delete += running[1:]
    elif running:
        plan.delete += _excess_of_surge(running, revision, now)
    elif fit is NodeFit.SHOULD_RUN:
        # Another pod is still terminating, and two are allowed.
        plan.create_on.append(name)


def has_changed(old: WorkloadPod, new: WorkloadPod) -> bool:
    """Whether node, phase or readiness of the pod has changed."""
    return (
        old.spec.node_name != new.spec.node_name
        or old.status.phase != new.status.phase
        or is_ready(old) != is_ready(new)
        or ready_since(old) != ready_since(new)
    )


def oldest_first(pods: Iterable[WorkloadPod]) -> list[WorkloadPod]:
    """Bound pods come before pods that only target the node."""
    return sorted(pods, key=_age)


def _age(pod: WorkloadPod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return (not pod.spec.node_name, created.timestamp() if created else 0.0, pod.metadata.name)


def _excess_of_surge(
    running: Sequence[WorkloadPod], revision: DaemonRevision, now: datetime
) -> list[WorkloadPod]:
    """All but one new and one old pod; the old one too, if it is not ready or the new one is available."""
    if len(running) == 1:
        return []
    new = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) == revision.hash]
    old = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) != revision.hash]
    excess = new[1:] + old[1:]
    if new and old and (not is_ready(old[0]) or is_available(new[0], revision.min_ready_seconds, now)):
        excess.append(old[0])
    return excess
