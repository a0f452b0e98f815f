"""On which nodes the pods of a DaemonSet run, and the handler of node events, which enqueues affected DaemonSets.

Whether a node should run a pod and whether a running pod may stay are separate questions: a NoSchedule taint keeps
new pods away, only a NoExecute taint removes running ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from enum import Enum

from podlife.api.node_requirement import NodeRequirement, tolerates
from podlife.api.views import controller_of
from podlife.client import DAEMON_SETS
from podlife.informer import CacheReader, Informer
from podlife.informer.indexes import Key
from podlife.podcontrol import BY_NODE
from podlife.workloads.daemonset.pod_template import NO_EXECUTE, NO_SCHEDULE, with_daemon_tolerations
from podlife.workloads.daemonset.views import DaemonNode, DaemonNodeTaint, DaemonSet
from podlife.workloads.pod_event_handler import OwnerKeys, key_of
from podlife.workloads.views import Template, WorkloadPod

_AT_ONCE_SECONDS = 0.01


class NodeFit(Enum):
    SHOULD_RUN = "should run"
    # No new pods, but running ones may stay.
    MAY_STAY = "may stay"
    MUST_NOT = "must not"


class Placement:
    """Node requirements of one template, parsed once."""

    def __init__(self, template: Template) -> None:
        spec = template.get("spec") or {}
        self._node_name: str = spec.get("nodeName") or ""
        self._requirement = NodeRequirement(spec)
        self._tolerations = with_daemon_tolerations(spec)

    def fit(self, node: DaemonNode) -> NodeFit:
        name = node.metadata.name
        if self._node_name not in ("", name) or not self._requirement.matches(name, node.metadata.labels):
            return NodeFit.MUST_NOT
        repelling = {taint.effect for taint in node.spec.taints if self._is_kept_away_by(taint)}
        if NO_EXECUTE in repelling:
            return NodeFit.MUST_NOT
        return NodeFit.MAY_STAY if NO_SCHEDULE in repelling else NodeFit.SHOULD_RUN

    def _is_kept_away_by(self, taint: DaemonNodeTaint) -> bool:
        return taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(
            tolerates(each, key=taint.key, effect=taint.effect, value=taint.value)
            for each in self._tolerations
        )


async def all_fits(placement: Placement, nodes: Iterable[DaemonNode]) -> dict[str, NodeFit]:
    """Fits by node name. Yields to other tasks: thousands of nodes may be matched against thousands of terms."""
    loop = asyncio.get_running_loop()
    fits = {}
    since = loop.time()
    for node in nodes:
        fits[node.metadata.name] = placement.fit(node)
        if loop.time() - since > _AT_ONCE_SECONDS:
            await asyncio.sleep(0)
            since = loop.time()
    return fits


class Placements:
    """Placements of all DaemonSets, parsed again only if the spec changed: every node event needs all of them."""

    def __init__(self) -> None:
        # With the UID and generation they were parsed from.
        self._known: dict[Key, tuple[str, int, Placement]] = {}

    def of(self, daemon_set: DaemonSet) -> Placement:
        key, metadata = key_of(daemon_set), daemon_set.metadata
        known = self._known.get(key)
        if known is None or known[:2] != (metadata.uid, metadata.generation):
            known = (metadata.uid, metadata.generation, Placement(daemon_set.spec.template))
            self._known[key] = known
        return known[2]

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


class NodeEventHandler:
    """Evaluates only changes of labels and taints, and enqueues only DaemonSets whose fit has changed."""

    def __init__(
        self,
        nodes: Informer[DaemonNode],
        daemon_sets: CacheReader[DaemonSet],
        pods: CacheReader[WorkloadPod],
        placements: Placements,
        queue: OwnerKeys,
    ) -> None:
        self._nodes = nodes
        self._daemon_sets = daemon_sets
        self._pods = pods
        self._placements = placements
        self._queue = queue

    def on_add(self, node: DaemonNode) -> None:
        # All DaemonSets are reconciled after the initial list, so events before that can be ignored.
        if self._nodes.has_synced:
            self._enqueue_affected(node)

    def on_update(self, old: DaemonNode, new: DaemonNode) -> None:
        if old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints:
            return
        for daemon_set in self._daemon_sets.list():
            placement = self._placements.of(daemon_set)
            if placement.fit(old) is not placement.fit(new):
                self._queue.add(key_of(daemon_set))

    def on_delete(self, node: DaemonNode) -> None:
        self._enqueue_affected(node)

    def _enqueue_affected(self, node: DaemonNode) -> None:
        """Enqueue DaemonSets that should run on the node, and those that do."""
        owners = (controller_of(pod.metadata) for pod in self._pods.by_index(BY_NODE, node.metadata.name))
        running = {owner.uid for owner in owners if owner is not None and owner.kind == DAEMON_SETS.kind}
        for daemon_set in self._daemon_sets.list():
            should_run = self._placements.of(daemon_set).fit(node) is NodeFit.SHOULD_RUN
            if should_run or daemon_set.metadata.uid in running:
                self._queue.add(key_of(daemon_set))
