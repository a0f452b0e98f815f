"""Type checking of policies: warnings for the kinds that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.policy_status import type_checking

RULE: dict[str, Any] = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["deployments", "deployments/scale", "none"],
}


def check(*validations: dict[str, str], rule: dict[str, Any] = RULE, **spec: Any) -> list[dict[str, str]]:
    whole = {"matchConstraints": {"resourceRules": [rule]}, "validations": list(validations), **spec}
    found: list[dict[str, str]] = type_checking(whole, ResourceCatalog()).get("expressionWarnings", [])
    return found


def test_types_that_do_not_fit_are_reported_with_their_place() -> None:
    first, second = check(
        {
            "expression": "object.spec.replicas > '1'",
            "messageExpression": "'wants replicas > 1, got ' + object.spec.replicas",
        }
    )
    assert first["fieldRef"] == "spec.validations[0].expression"
    assert first["warning"] == (
        "apps/v1, Kind=Deployment: ERROR: <input>:1:22: "
        "found no matching overload for '_>_' applied to '(int, string)'\n"
        " | object.spec.replicas > '1'\n | .....................^\n"
    )
    assert second["fieldRef"] == "spec.validations[0].messageExpression"


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object.metadata.labels['a'] == object.metadata.name",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('x'))",
        "object.spec.template.spec.containers[0].ports[0].containerPort > 80",
        "object.spec.template.spec.containers[0].resources.limits['cpu'] == '1'",
        "object.spec.strategy.rollingUpdate.maxSurge == 1 || oldObject.status.replicas == 1",
        "variables.n > 1 && params.data.x == ''",
    ],
)
def test_what_the_schema_has_is_fine(expression: str) -> None:
    variables = [{"name": "n", "expression": "object.spec.replicas"}]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert check({"expression": expression}, variables=variables, paramKind=kind) == []


def test_every_kind_is_checked_and_none_if_a_rule_has_wildcards() -> None:
    both = {**RULE, "resources": ["replicasets", "deployments"]}
    [warning] = check({"expression": "object.spec.none"}, rule=both)
    deployment, _, replica_set = warning["warning"].partition("\n\n")
    assert deployment.startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'none'")
    assert replica_set.startswith("apps/v1, Kind=ReplicaSet: ERROR")
    assert check({"expression": "object.spec.none"}, rule={**RULE, "apiVersions": ["*"]}) == []
