"""podFailurePolicy and successPolicy of a Job. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podlife.workloads.job.index_ranges import IndexRanges
from podlife.workloads.job.views import (
    ExitCodes,
    FailureRule,
    JobSpec,
    PodConditionPattern,
    PodFailurePolicy,
    SuccessRule,
)
from podlife.workloads.views import WorkloadContainerStatus, WorkloadPod


@dataclass(frozen=True, slots=True)
class Ruling:
    """How a failure is treated. `action` is empty if no rule matched: then the failure counts."""

    action: str = ""
    # Why the whole Job fails, if it does.
    message: str = ""

    @property
    def is_counted(self) -> bool:
        return self.action != "Ignore"


_COUNTED = Ruling()


def rule_on_failure(policy: PodFailurePolicy | None, pod: WorkloadPod) -> Ruling:
    """The ruling of the first matching rule."""
    for number, rule in enumerate((policy.rules if policy else None) or ()):
        why = _why_it_matches(rule, pod)
        if why:
            message = (
                f"{why} matching {rule.action} rule at index {number}" if rule.action == "FailJob" else ""
            )
            return Ruling(rule.action, message)
    return _COUNTED


def _why_it_matches(rule: FailureRule, pod: WorkloadPod) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
            found = _matching_exit(statuses, rule.on_exit_codes)
            if found is not None:
                container, code = found
                return f"Container {container} for pod {name} failed with exit code {code}"
        return ""
    condition = _matching_condition(pod, rule.on_pod_conditions)
    return f"Pod {name} has condition {condition}" if condition else ""


def _matching_exit(statuses: Iterable[WorkloadContainerStatus], wanted: ExitCodes) -> tuple[str, int] | None:
    for status in statuses:
        ended = status.state.terminated if status.state else None
        # Skip containers that are running or have succeeded.
        if ended is None or ended.exit_code == 0 or wanted.container_name not in (None, status.name):
            continue
        is_listed = ended.exit_code in wanted.values
        if (wanted.operator == "In" and is_listed) or (wanted.operator == "NotIn" and not is_listed):
            return status.name, ended.exit_code
    return None


def _matching_condition(pod: WorkloadPod, patterns: tuple[PodConditionPattern, ...]) -> str:
    for condition in pod.status.conditions:
        if any(each.type == condition.type and each.status == condition.status for each in patterns):
            return condition.type
    return ""


def met_success_rule(spec: JobSpec, succeeded: IndexRanges) -> int | None:
    """Index of the first rule that is met: enough indexes, or all named ones, have succeeded."""
    if spec.success_policy is None or not succeeded.ranges:
        return None
    for number, rule in enumerate(spec.success_policy.rules):
        if _is_met(rule, succeeded, spec.index_count):
            return number
    return None


def _is_met(rule: SuccessRule, succeeded: IndexRanges, count: int) -> bool:
    if rule.succeeded_indexes is None:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = IndexRanges.parse(rule.succeeded_indexes, count)
    if not wanted.ranges:
        return False
    both = wanted.overlap(succeeded)
    return both == len(wanted) or (rule.succeeded_count is not None and both >= rule.succeeded_count)
