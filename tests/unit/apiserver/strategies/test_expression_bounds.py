"""What compiles expressions has a bound on all of them together, before the first is compiled."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.resource_table import RESOURCES
from podlife.apiserver.strategies.field_checks import MOST_EXPRESSION_BYTES
from tests.fuzz.objects import SEEDS

_SEEDS = {seed.resource.key: seed for seed in SEEDS}
_ROWS = {row.key: row for row in RESOURCES}
_REGISTRATION = "admissionregistration.k8s.io"
_EACH = "[1,1,1].size() < 5"
_MOST = MOST_EXPRESSION_BYTES // len(_EACH)


def _definition(rules: list[str]) -> dict[str, Any]:
    """Two versions share the rules: the bound is that of the definition."""
    half = len(rules) // 2
    return {
        "metadata": {"name": "as.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-validations": [{"rule": rule} for rule in part],
                        }
                    },
                }
                for name, part in (("v1", rules[:half]), ("v2", rules[half:]))
            ],
        },
        "status": {"storedVersions": ["v1"]},
    }


def _policy(plural: str, field: str, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    obj = _SEEDS[f"{plural}.{_REGISTRATION}"].object("a")
    obj["spec"] = {**obj["spec"], field: expressions}
    return obj


def _webhooks(expressions: list[str]) -> dict[str, Any]:
    obj = _SEEDS[f"validatingwebhookconfigurations.{_REGISTRATION}"].object("a")
    conditions = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
    parts = (conditions[start : start + 64] for start in range(0, len(conditions), 64))
    hooks = [
        {**obj["webhooks"][0], "name": f"h{index}.example.com", "matchConditions": part}
        for index, part in enumerate(parts)
    ]
    return {**obj, "webhooks": hooks}


def _object(key: str, expressions: list[str]) -> dict[str, Any]:
    match key.partition(".")[0]:
        case "customresourcedefinitions":
            return _definition(expressions)
        case "validatingwebhookconfigurations":
            return _webhooks(expressions)
        case "mutatingadmissionpolicies" as plural:
            variables = [{"name": f"v{index}", "expression": each} for index, each in enumerate(expressions)]
            return _policy(plural, "variables", variables)
        case plural:
            return _policy(plural, "validations", [{"expression": each} for each in expressions])


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("customresourcedefinitions.apiextensions.k8s.io", "spec.versions"),
        (f"validatingwebhookconfigurations.{_REGISTRATION}", "webhooks"),
        (f"mutatingadmissionpolicies.{_REGISTRATION}", "spec"),
        (f"validatingadmissionpolicies.{_REGISTRATION}", "spec"),
    ],
)
def test_expressions_of_an_object_have_a_bound_together(key: str, path: str) -> None:
    strategy = _ROWS[key].strategy
    allowed, refused = (_object(key, [_EACH] * count) for count in (_MOST, _MOST + 1))
    for obj in (allowed, refused):
        strategy.default(obj)
    assert strategy.validate(allowed) == []
    [error] = strategy.validate(refused)
    assert str(error) == f"{path}: Too long: may not be more than {MOST_EXPRESSION_BYTES} bytes"


def test_selectors_of_a_claim_have_a_bound_together() -> None:
    def validate(count: int) -> list[str]:
        selectors = [{"cel": {"expression": "true".ljust(10 * 1024)}}] * count
        request = {"name": "a", "exactly": {"deviceClassName": "a", "selectors": selectors}}
        claim = {"spec": {"devices": {"requests": [request]}}}
        strategy = _ROWS["resourceclaims.resource.k8s.io"].strategy
        strategy.default(claim)
        return [str(error) for error in strategy.validate(claim)]

    too_long = f"spec.devices.requests: Too long: may not be more than {MOST_EXPRESSION_BYTES} bytes"
    assert validate(6) == []
    assert validate(7) == [too_long]
