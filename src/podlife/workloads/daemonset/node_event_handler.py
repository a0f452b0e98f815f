"""Node event handler of the DaemonSet controller.

Nodes report often. Only changes of labels or taints are evaluated, and they enqueue only DaemonSets for which the
node's fit has changed: one check per DaemonSet, and no pods of other nodes are examined.
"""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import DAEMON_SETS
from podlife.informer import CacheReader, Informer
from podlife.podcontrol import BY_NODE
from podlife.workloads.daemonset.placement import NodeFit, Placements
from podlife.workloads.daemonset.views import DaemonNode, DaemonSet
from podlife.workloads.pod_event_handler import OwnerKeys, key_of
from podlife.workloads.views import WorkloadPod


class NodeEventHandler:
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
            self._enqueue_who_has_to_do_with(node)

    def on_update(self, old: DaemonNode, new: DaemonNode) -> None:
        if old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints:
            return
        for daemon_set in self._daemon_sets.list():
            placement = self._placements.of(daemon_set)
            if placement.fit(old) is not placement.fit(new):
                self._queue.add(key_of(daemon_set))

    def on_delete(self, node: DaemonNode) -> None:
        self._enqueue_who_has_to_do_with(node)

    def _enqueue_who_has_to_do_with(self, node: DaemonNode) -> None:
        """Those that should run there, and those that do."""
        owners = (controller_of(pod.metadata) for pod in self._pods.by_index(BY_NODE, node.metadata.name))
        running = {owner.uid for owner in owners if owner is not None and owner.kind == DAEMON_SETS.kind}
        for daemon_set in self._daemon_sets.list():
            should_run = self._placements.of(daemon_set).fit(node) is NodeFit.SHOULD_RUN
            if should_run or daemon_set.metadata.uid in running:
                self._queue.add(key_of(daemon_set))
