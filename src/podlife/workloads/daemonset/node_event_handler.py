"""What becomes of nodes, told to the DaemonSets that care: a handler for the informer of nodes.

Nodes report all the time, and there are many. Only a change of labels or taints is looked at, and it enqueues only the
DaemonSets to which the node is another one than before: that cost is one question to each DaemonSet, and no pod of
another node is looked at.
"""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import DAEMON_SETS
from podlife.informer import CacheReader, Informer
from podlife.podcontrol import BY_NODE
from podlife.workloads.daemonset.placement import Fit, Placements
from podlife.workloads.daemonset.views import DaemonSet, Node
from podlife.workloads.pod_event_handler import Keys, key_of
from podlife.workloads.views import Pod

__all__ = ["NodeEvents"]


class NodeEvents:
    def __init__(
        self,
        nodes: Informer[Node],
        daemon_sets: CacheReader[DaemonSet],
        pods: CacheReader[Pod],
        placements: Placements,
        queue: Keys,
    ) -> None:
        self._nodes = nodes
        self._daemon_sets = daemon_sets
        self._pods = pods
        self._placements = placements
        self._queue = queue

    def on_add(self, node: Node) -> None:
        # Nobody decides before the first list is whole, and then everybody does: nothing is missed till then.
        if self._nodes.has_synced:
            self._enqueue_who_has_to_do_with(node)

    def on_update(self, old: Node, new: Node) -> None:
        if old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints:
            return
        for daemon_set in self._daemon_sets.list():
            placement = self._placements.of(daemon_set)
            if placement.fit(old) is not placement.fit(new):
                self._queue.add(key_of(daemon_set))

    def on_delete(self, node: Node) -> None:
        self._enqueue_who_has_to_do_with(node)

    def _enqueue_who_has_to_do_with(self, node: Node) -> None:
        """Those that should run there, and those that do."""
        owners = (controller_of(pod.metadata) for pod in self._pods.by_index(BY_NODE, node.metadata.name))
        running = {owner.uid for owner in owners if owner is not None and owner.kind == DAEMON_SETS.kind}
        for daemon_set in self._daemon_sets.list():
            should_run = self._placements.of(daemon_set).fit(node) is Fit.SHOULD_RUN
            if should_run or daemon_set.metadata.uid in running:
                self._queue.add(key_of(daemon_set))
