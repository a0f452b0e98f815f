"""What the collector decides by. The defaults are kube-controller-manager's (v1.36)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podlife.podgc.policy.model import Guards, Policy

__all__ = ["Cause", "FeatureGates", "Reason", "RuleReason", "Selection", "Settings"]


class Reason(StrEnum):
    """Why a pod is collected, in the order in which a pass looks (GC-05); upstream's metric labels (GC-110)."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


class RuleReason(StrEnum):
    """Why a rule of a policy lets a pod go."""

    # Too long after its end.
    EXPIRED = "expired"
    # More of its kind are kept than the rule allows, and it is among the oldest.
    SURPLUS = "surplus"
    # Deleted, and still there too long after its grace.
    STUCK_TERMINATING = "stuck-terminating"


Cause = Reason | RuleReason


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Off, each gives the behaviour from before it; the names are upstream's, in our spelling."""

    # Without it terminating pods on nodes that are out of service are left alone.
    node_out_of_service_volume_detach: bool = True
    # Without it no DisruptionTarget condition is written; without this and the next, no phase either.
    pod_disruption_conditions: bool = True
    job_pod_replacement_policy: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings: a policy is applied when the object is created, so no caller can forget its guards.

    The policy's numbers win, guards are tightened, and a reason that either side turns off is off. To switch to
    another policy, start from settings without one."""

    # How many terminated pods may stay; 0 or less keeps all of them (GC-03).
    threshold: int = 12_500
    # How long after the end of a full pass the next one comes (GC-01). What changes is seen at once.
    period_seconds: float = 20.0
    # How long a node must be missing before its pods are orphans (GC-02).
    quarantine_seconds: float = 40.0
    collect: frozenset[Reason] = frozenset(Reason)
    gates: FeatureGates = field(default_factory=FeatureGates)
    # How many calls may be under way; the client's limiter, which knows the server, mostly allows fewer.
    most_in_flight: int = 128
    # How long calls that are under way may go on after the collector was told to stop.
    stop_seconds: float = 10.0
    # The rules and protections in force; None is upstream's policy, and nothing is known of any other.
    policy: Policy | None = None
    # What is never exceeded; None is nothing, and then nobody's marks on namespaces are looked for either.
    guards: Guards | None = None
    # A person has said that no share of the pods is too many.
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
        """Whether a pod that has not ended is made Failed before it is deleted (GC-90)."""
        return self.gates.pod_disruption_conditions or self.gates.job_pod_replacement_policy


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the planned pods are meant. Which are planned is decided over the whole cluster, always."""

    namespace: str = ""
    label_selector: str = ""
