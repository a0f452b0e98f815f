from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.job.index_ranges import IndexRanges
from podlife.workloads.job.policies import met_success_rule, rule_on_failure
from tests.unit.workloads.job.made import ended, job, pod


def on_exit(action: str, operator: str, *values: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


def on_condition(action: str, type_: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": type_, "status": status}]}


BOTH = [ended(1), ended(2, name="other")]


@pytest.mark.parametrize(
    ("rules", "statuses", "action"),
    [
        ([], BOTH, ""),
        ([on_exit("Ignore", "In", 1)], BOTH, "Ignore"),
        ([on_exit("Ignore", "In", 3)], BOTH, ""),
        ([on_exit("Count", "NotIn", 1)], BOTH, "Count"),
        ([on_exit("Count", "NotIn", 1, 2)], BOTH, ""),
        ([on_exit("FailIndex", "In", 1, containerName="main")], BOTH, "FailIndex"),
        ([on_exit("FailIndex", "In", 1, containerName="other")], BOTH, ""),
        # The first that matches decides.
        ([on_exit("Ignore", "In", 9), on_exit("Count", "In", 2), on_exit("FailJob", "In", 1)], BOTH, "Count"),
        # A container that succeeded or has not ended matches nothing.
        ([on_exit("FailJob", "NotIn", 7)], [ended(0), {"name": "other"}], ""),
        ([on_exit("FailJob", "Between", 1)], BOTH, ""),
    ],
)
def test_exit_codes_of_the_containers_are_looked_up(
    rules: list[dict[str, Any]], statuses: list[dict[str, Any]], action: str
) -> None:
    spec = job(podFailurePolicy={"rules": rules}).spec
    assert (
        rule_on_failure(spec.pod_failure_policy, pod("Failed", containerStatuses=statuses)).action == action
    )


def test_init_containers_are_looked_at_after_the_others() -> None:
    policy = job(podFailurePolicy={"rules": [on_exit("FailJob", "In", 5, 6)]}).spec.pod_failure_policy
    failed = pod("Failed", initContainerStatuses=[ended(5, name="before")])
    assert "Container before for pod" in rule_on_failure(policy, failed).message
    failed = pod("Failed", initContainerStatuses=[ended(5, name="before")], containerStatuses=[ended(6)])
    assert "Container main for pod" in rule_on_failure(policy, failed).message


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        (on_condition("Ignore", "DisruptionTarget"), "Ignore"),
        (on_condition("Ignore", "DisruptionTarget", "False"), ""),
        (on_condition("Ignore", "Other"), ""),
    ],
)
def test_conditions_of_the_pod_are_looked_up(rule: dict[str, Any], action: str) -> None:
    failed = pod("Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
    ruling = rule_on_failure(job(podFailurePolicy={"rules": [rule]}).spec.pod_failure_policy, failed)
    assert (ruling.action, ruling.is_counted) == (action, action != "Ignore")


def test_rule_that_fails_the_job_says_why() -> None:
    failed = pod("Failed", containerStatuses=[ended(42)], conditions=[{"type": "Broken", "status": "True"}])
    name = f"default/{failed.metadata.name}"
    policy = job(podFailurePolicy={"rules": [on_exit("Ignore", "In", 1), on_exit("FailJob", "In", 42)]})
    assert rule_on_failure(policy.spec.pod_failure_policy, failed).message == (
        f"Container main for pod {name} failed with exit code 42 matching FailJob rule at index 1"
    )
    policy = job(podFailurePolicy={"rules": [on_condition("FailJob", "Broken")]})
    assert rule_on_failure(policy.spec.pod_failure_policy, failed).message == (
        f"Pod {name} has condition Broken matching FailJob rule at index 0"
    )


@pytest.mark.parametrize(
    ("rules", "succeeded", "met"),
    [
        ([{"succeededCount": 2}], {3, 4}, 0),
        ([{"succeededCount": 3}], {3, 4}, None),
        ([{"succeededIndexes": "1-3"}], {1, 2}, None),
        ([{"succeededIndexes": "1-3"}], {0, 1, 2, 3, 7}, 0),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], {1, 3}, 0),
        ([{"succeededIndexes": "1-3", "succeededCount": 2}], {1, 5}, None),
        ([{"succeededIndexes": "9"}, {"succeededIndexes": "0"}], {0}, 1),
        # Of indexes that are not wanted any more only the others count.
        ([{"succeededIndexes": "0,11"}], {0}, 0),
        ([{"succeededIndexes": "11"}], {0}, None),
        ([{"succeededCount": 1}], set(), None),
        ([], {1}, None),
    ],
)
def test_success_rule_wants_its_indexes_or_enough_of_them(
    rules: list[dict[str, Any]], succeeded: set[int], met: int | None
) -> None:
    spec = job(completions=10, completionMode="Indexed", successPolicy={"rules": rules}).spec
    assert met_success_rule(spec, IndexRanges.of(succeeded)) == met


def test_job_without_a_success_policy_meets_none() -> None:
    assert met_success_rule(job(completions=1).spec, IndexRanges.of({0})) is None


@pytest.mark.parametrize("policy", [{}, {"rules": None}, {"rules": []}])
def test_policy_without_rules_lets_every_failure_count(policy: dict[str, Any]) -> None:
    """kube-apiserver lets such a policy in, and writes its rules as null."""
    ruling = rule_on_failure(job(podFailurePolicy=policy).spec.pod_failure_policy, pod("Failed"))
    assert ruling.is_counted
