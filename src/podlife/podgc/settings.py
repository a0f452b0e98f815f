"""Settings of the collector. The defaults are those of kube-controller-manager (v1.36)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podlife.podgc.policy.model import Guards, Policy
from podlife.podgc.reasons import Reason


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Upstream's feature gates. Disabled, each restores the behaviour from before it."""

    # Disabled: terminating pods on out-of-service nodes are left alone.
    node_out_of_service_volume_detach: bool = True
    # Disabled: no DisruptionTarget condition is written; with the next one disabled too, no phase either.
    pod_disruption_conditions: bool = True
    job_pod_replacement_policy: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings: a policy is applied when the object is created, so no caller can forget its guards.

    The policy's numbers win, guards are tightened, and a reason that either side turns off is off. To switch to
    another policy, start from settings without one."""

    # Maximum number of terminated pods; 0 or less keeps all of them (GC-03).
    threshold: int = 12_500
    # Time from the end of a full pass to the next one (GC-01). Changes are handled at once.
    period_seconds: float = 20.0
    # How long a node must be missing before its pods are orphans (GC-02).
    quarantine_seconds: float = 40.0
    collect: frozenset[Reason] = frozenset(Reason)
    gates: FeatureGates = field(default_factory=FeatureGates)
    # Maximum number of concurrent requests; the client's limiter usually allows fewer.
    most_in_flight: int = 128
    # Maximum time for in-flight requests on shutdown.
    stop_seconds: float = 10.0
    # The rules and protections in force; None is upstream's behaviour.
    policy: Policy | None = None
    # Limits that are never exceeded; with None, annotations on namespaces are not read either.
    guards: Guards | None = None
    # The user disabled the share guards.
    is_forced: bool = False

    def __post_init__(self) -> None:
        policy = self.policy
        if policy is None:
            return
        guards = policy.guards if self.guards is None else policy.guards.tightened_by(self.guards)
        in_force: dict[str, Any] = {"guards": guards}
        if policy.collect is not None:
            in_force["collect"] = self.collect & policy.collect
        if policy.threshold is not None:
            in_force["threshold"] = policy.threshold
        if policy.quarantine_seconds is not None:
            in_force["quarantine_seconds"] = policy.quarantine_seconds
        for name, value in in_force.items():
            object.__setattr__(self, name, value)

    def does_collect(self, reason: Reason) -> bool:
        if reason is Reason.TERMINATED and self.threshold <= 0:
            return False
        if reason is Reason.OUT_OF_SERVICE and not self.gates.node_out_of_service_volume_detach:
            return False
        return reason in self.collect

    @property
    def asks_namespaces(self) -> bool:
        """Whether namespaces are needed: for their labels, or for stop and force annotations."""
        return self.policy is not None or self.guards is not None

    @property
    def marks_failed(self) -> bool:
        """Whether a pod that has not ended is marked Failed before it is deleted (GC-90)."""
        return self.gates.pod_disruption_conditions or self.gates.job_pod_replacement_policy


@dataclass(frozen=True, slots=True)
class Selection:
    """Limits a session to some pods. Which pods are collectable is still decided over the whole cluster. For users who
    may not read it, `reads_namespace_only` decides over the namespace, without nodes: never more pods."""

    namespace: str = ""
    label_selector: str = ""
    reads_namespace_only: bool = False
