"""What is to be collected, by a look at every pod and every node: written straight from the rules, and slow.

It keeps nothing but the objects and the times at which nodes were missed; the incremental index has to plan the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from podlife.api.views import Node
from podlife.podgc import Reason, Settings
from podlife.podgc.views import Pod

TAINT = "node.kubernetes.io/out-of-service"


@dataclass
class Missing:
    seen_at: float
    checked_at: float | None = None
    believed: set[str] = field(default_factory=set)


@dataclass
class Oracle:
    settings: Settings
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    # Pods that are being removed for another reason: their phase is the collector's own doing.
    leaving: set[str] = field(default_factory=set)

    def look(self, now: float) -> None:
        """After each change: which nodes are missed, from when on. Those of settled pods alone are not."""
        wanted = {
            pod.spec.node_name
            for pod in self.pods.values()
            if pod.spec.node_name and pod.spec.node_name not in self.nodes and not self.is_settled(pod)
        }
        self.missing = {name: known for name, known in self.missing.items() if name in wanted}
        for name in wanted - set(self.missing):
            self.missing[name] = Missing(now)
        for name, missing in self.missing.items():
            missing.believed &= {pod.metadata.uid for pod in self.on(name)}

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name == node and not self.is_settled(pod)]

    def is_settled(self, pod: Pod) -> bool:
        """At grace 0, held by a finalizer, and with no phase left to write."""
        metadata = pod.metadata
        gates = self.settings.gates
        marks = gates.pod_disruption_conditions or gates.job_pod_replacement_policy
        return (
            metadata.deletion_timestamp is not None
            and metadata.deletion_grace_period_seconds == 0
            and len(metadata.finalizers) > 0
            and (pod.status.phase in ("Succeeded", "Failed") or not marks)
        )

    def check(self, name: str, now: float, *, is_gone: bool) -> None:
        """A live look at a missing node (GC-52, GC-53)."""
        missing = self.missing[name]
        missing.checked_at = now
        missing.believed = {pod.metadata.uid for pod in self.on(name)} if is_gone else set()

    def due(self, now: float) -> set[str]:
        if Reason.ORPHANED not in self.settings.collect:
            return set()
        quarantine, period = self.settings.quarantine_seconds, self.settings.period_seconds
        return {
            name
            for name, missing in self.missing.items()
            if (now >= missing.seen_at + max(quarantine, 0.0) and missing.checked_at is None)
            or (missing.checked_at is not None and now >= missing.checked_at + max(quarantine, period))
        }

    def plan(self) -> list[tuple[str, Reason]]:
        """UIDs and reasons: the terminated in their order, then the others."""
        planned: dict[str, Reason] = {}
        settings = self.settings
        live = [pod for pod in self.pods.values() if not self.is_settled(pod)]
        if Reason.TERMINATED in settings.collect and settings.threshold > 0:
            counted = [pod for pod in live if is_terminated(pod) and pod.metadata.uid not in self.leaving]
            terminated = sorted(counted, key=victim_order)
            for pod in terminated[: max(0, len(terminated) - settings.threshold)]:
                planned[pod.metadata.uid] = Reason.TERMINATED
        if Reason.OUT_OF_SERVICE in settings.collect and settings.gates.node_out_of_service_volume_detach:
            for pod in live:
                node = self.nodes.get(pod.spec.node_name)
                if pod.metadata.deletion_timestamp and node and is_out(node):
                    planned.setdefault(pod.metadata.uid, Reason.OUT_OF_SERVICE)
        if Reason.ORPHANED in settings.collect:
            for missing in self.missing.values():
                for uid in missing.believed:
                    planned.setdefault(uid, Reason.ORPHANED)
        if Reason.UNSCHEDULED in settings.collect:
            for pod in live:
                if pod.metadata.deletion_timestamp and pod.spec.node_name == "":
                    planned.setdefault(pod.metadata.uid, Reason.UNSCHEDULED)
        return list(planned.items())


def is_terminated(pod: Pod) -> bool:
    return pod.status.phase not in ("Pending", "Running", "Unknown")


def victim_order(pod: Pod) -> tuple[bool, datetime, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    created = pod.metadata.creation_timestamp or datetime(1, 1, 1, tzinfo=UTC)
    return (not is_evicted, created, pod.metadata.name, pod.metadata.uid)


def is_out(node: Node) -> bool:
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    return ready[:1] != ["True"] and TAINT in [taint.key for taint in node.spec.taints]
