"""The status of a PodDisruptionBudget. Pure.

A pod is healthy if it is ready and not being deleted. The API server records evictions in `disruptedPods`: such a pod
counts as gone until its deletion is observed or two minutes have passed, so that two evictions in quick succession do
not count the same pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import format_time, parse_time
from podlife.podcontrol import is_ready
from podlife.workloads.disruption.views import Budget, BudgetSpec
from podlife.workloads.status import ConditionDict, Conditions, changed_fields, find_condition
from podlife.workloads.views import Status, WorkloadPod, scaled

# Maximum time until the deletion of an evicted pod is observed.
DELETION_TIMEOUT = timedelta(minutes=2)
DISRUPTION_ALLOWED = "DisruptionAllowed"


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected pods, required healthy pods, and pods whose scale is unknown."""

    pods: int
    healthy: int
    unmanaged: tuple[str, ...] = ()


def needs_scale(spec: BudgetSpec) -> bool:
    """Whether the scale of the pods' controllers is needed: for a percentage and for maxUnavailable."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def expected_of(spec: BudgetSpec, pods: int, unmanaged: tuple[str, ...] = ()) -> Expected:
    """Raises InvalidInputError for values that are neither numbers nor percentages."""
    if spec.max_unavailable is not None:
        unavailable = scaled(spec.max_unavailable, pods, round_up=True, what="maxUnavailable")
        return Expected(pods, max(0, pods - unavailable), unmanaged)
    if spec.min_available is not None:
        return Expected(pods, scaled(spec.min_available, pods, round_up=True, what="minAvailable"), unmanaged)
    return Expected(0, 0)


@dataclass(frozen=True, slots=True)
class Disrupted:
    """Pods still recorded as evicted, pods not deleted in time, and when to check again."""

    recorded: Mapping[str, str]
    overdue: tuple[WorkloadPod, ...] = ()
    expires: datetime | None = None


def disrupted_of(budget: Budget, pods: Collection[WorkloadPod], now: datetime) -> Disrupted:
    """Drops records of pods that are gone or terminating."""
    known: Mapping[str, str] = budget.status.get("disruptedPods") or {}
    recorded: dict[str, str] = {}
    overdue: list[WorkloadPod] = []
    expiries: list[datetime] = []
    for pod in pods:
        name = pod.metadata.name
        if name not in known or pod.metadata.deletion_timestamp is not None:
            continue
        expiry = _expiry(known[name])
        # Inclusive: otherwise it would be checked again immediately.
        if expiry is None or expiry <= now:
            overdue.append(pod)
        else:
            recorded[name] = known[name]
            expiries.append(expiry)
    return Disrupted(recorded, tuple(overdue), min(expiries, default=None))


def count_healthy(pods: Collection[WorkloadPod], disrupted: Disrupted) -> int:
    return sum(
        is_ready(pod)
        and pod.metadata.deletion_timestamp is None
        and pod.metadata.name not in disrupted.recorded
        for pod in pods
    )


def _expiry(text: str) -> datetime | None:
    """None for an invalid time: such a record has expired."""
    try:
        return parse_time(text) + DELETION_TIMEOUT
    except (ValueError, OverflowError):
        return None


def new_status(
    budget: Budget, expected: Expected, healthy: int, disrupted: Disrupted, now: datetime
) -> Status:
    """A budget that selects no pod allows no disruption: its first pods may exist before the next sync."""
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    status: Status = {
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "expectedPods": expected.pods,
        "disruptionsAllowed": allowed,
    }
    if disrupted.recorded:
        status["disruptedPods"] = dict(disrupted.recorded)
    reason = "SufficientPods" if allowed else "InsufficientPods"
    verdict = ConditionDict(DISRUPTION_ALLOWED, str(allowed > 0), reason)
    return _with_verdict(status, budget, budget.metadata.generation, verdict, now)


def failed_status(budget: Budget, message: str, now: datetime) -> Status:
    """Allows no eviction, because the counts may be out of date."""
    zeros = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    generation = budget.status.get("observedGeneration") or 0
    status = {**zeros, **budget.status, "disruptionsAllowed": 0}
    verdict = ConditionDict(DISRUPTION_ALLOWED, "False", "SyncFailed", message)
    return _with_verdict(status, budget, generation, verdict, now)


def _with_verdict(
    status: Status, budget: Budget, generation: int, verdict: ConditionDict, now: datetime
) -> Status:
    observed = {"observedGeneration": generation} if generation else {}
    condition: dict[str, Any] = {
        "type": verdict.type,
        "status": verdict.status,
        **observed,
        "lastTransitionTime": format_time(now),
        "reason": verdict.reason,
        "message": verdict.message,
    }
    return {**status, **observed, "conditions": _with_condition(budget.status.get("conditions"), condition)}


def _with_condition(known: Conditions | None, condition: dict[str, Any]) -> Conditions:
    """Replaces the condition of the same type; an unchanged status keeps its transition time."""
    old = find_condition(known, condition["type"])
    if old is None:
        return [*(known or ()), condition]
    if old.get("status") == condition["status"] and old.get("lastTransitionTime"):
        condition = {**condition, "lastTransitionTime": old["lastTransitionTime"]}
    return [condition if each is old else each for each in known or ()]


def patch_of(old: Status, new: Status) -> Status:
    """The merge patch between two statuses, which removes entries of disruptedPods."""
    patch = changed_fields(old, new)
    before, after = old.get("disruptedPods") or {}, patch.get("disruptedPods")
    if after:
        patch["disruptedPods"] = {**{name: None for name in before if name not in after}, **after}
    return patch


def selector_text(budget: Budget) -> str:
    """As Go prints it in the events of kube-controller-manager."""
    selector = budget.spec.selector
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
