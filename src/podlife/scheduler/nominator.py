"""Pods that preempted others, and the node on which each waits for its place. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podlife.scheduler.demand import Demand, demand_of
from podlife.scheduler.views import SchedulerPod


class Nominator:
    """One nomination per pod: `status.nominatedNodeName`, or a newer one that is not written yet."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}
        self._pods: dict[str, dict[str, tuple[SchedulerPod, Demand]]] = {}

    def put(self, pod: SchedulerPod, node_name: str) -> None:
        self.remove(pod.metadata.uid)
        self._nodes[pod.metadata.uid] = node_name
        self._pods.setdefault(node_name, {})[pod.metadata.uid] = (pod, demand_of(pod))

    def remove(self, uid: str) -> bool:
        """Return whether it was nominated."""
        node_name = self._nodes.pop(uid, None)
        if node_name is None:
            return False
        del self._pods[node_name][uid]
        if not self._pods[node_name]:
            del self._pods[node_name]
        return True

    def node_of(self, uid: str) -> str:
        return self._nodes.get(uid, "")

    def reserved(self, node_name: str, uid: str, priority: int) -> dict[str, Demand]:
        """Pods for which the node keeps room when a pod of this priority is scheduled."""
        found = self._pods.get(node_name)
        if not found:
            return {}
        return {
            other: demand
            for other, (_, demand) in found.items()
            if other != uid and demand.priority >= priority
        }

    def has_reserved(self, uid: str, priority: int) -> bool:
        return any(self.reserved(name, uid, priority) for name in self._pods)

    def below(self, node_name: str, priority: int) -> Iterator[SchedulerPod]:
        """Pods nominated for the node that a pod of this priority may displace."""
        return (pod for pod, demand in self._pods.get(node_name, {}).values() if demand.priority < priority)
