"""Admission policies and bindings, good and bad, are answered as kube-apiserver answers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.real_parts import Server, controller_manager
from tests.real.differential.compare import AreaRun
from tests.real.differential.steps import Area, Step
from tests.real.differential.target import Target

GROUP = "/apis/admissionregistration.k8s.io/v1"
STATUS_CONTROLLER = "validatingadmissionpolicy-status-controller"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
# It matches no request of any other test.
RULE: dict[str, Any] = {
    "apiGroups": ["none.example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nothings"],
}
MATCH: dict[str, Any] = {"resourceRules": [RULE]}
VALIDATING: dict[str, Any] = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
OPERATIONS = '[JSONPatch{op: "remove", path: "/x"}]'
PATCH = {"patchType": "JSONPatch", "jsonPatch": {"expression": OPERATIONS}}
MUTATING: dict[str, Any] = {
    "matchConstraints": MATCH,
    "mutations": [PATCH],
    "reinvocationPolicy": "Never",
}
# Type checking finds their errors, in the status; without a binding no request is affected.
WRONG_TYPES: dict[str, Any] = {
    "matchConstraints": {
        "resourceRules": [
            {**RULE, "apiGroups": ["apps"], "resources": ["deployments", "deployments/scale", "nothings"]},
            {**RULE, "apiGroups": ["", "autoscaling"], "resources": ["pods", "horizontalpodautoscalers"]},
        ]
    },
    "variables": [{"name": "count", "expression": "object.spec.replicas"}],
    "validations": [
        {"expression": "object.spec.replicas > '1'", "messageExpression": "'x' + object.spec.replicas"},
        {"expression": "object.spec.none || variables.count == 'a' || object.metadata.name == 1"},
        {"expression": "params.data.x == 1 || params.none"},
    ],
}
BINDING: dict[str, Any] = {"policyName": "none.example.com", "validationActions": ["Deny"]}

BAD_POLICIES: dict[str, dict[str, Any]] = {
    "failure-policy": {"failurePolicy": "Maybe"},
    "no-match": {"matchConstraints": None},
    "no-rules": {"matchConstraints": {"matchPolicy": "Nearly"}},
    "bad-names": {"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["a", "a", "a/b", ""]}]}},
    "bad-exclusion": {"matchConstraints": {**MATCH, "excludeResourceRules": [{}]}},
    "selectors": {"matchConstraints": {**MATCH, "objectSelector": {"matchLabels": {"a b": "c"}}}},
    "param-kind": {"paramKind": {"apiVersion": "a/b/c", "kind": "X Y"}},
    "param-group": {"paramKind": {"apiVersion": "A_b/1v", "kind": ""}},
    "param-nothing": {"paramKind": {}},
    "conditions": {"matchConditions": [{}, {"name": "x y", "expression": "true"}]},
    "variables": {
        "variables": [{"name": "1x", "expression": "1"}, {"name": "in", "expression": ""}, {"name": " "}]
    },
}
BAD_POLICIES |= {
    "condition-expressions": {
        "matchConditions": [
            {"name": "a", "expression": " object.x = 1 "},
            {"name": "b", "expression": "params.x == ''"},
            {"name": "c", "expression": "variables.x"},
        ]
    },
    "condition-params": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "a", "expression": "params.x"}],
    },
    "variable-expressions": {
        "variables": [
            {"name": "a", "expression": "variables.b"},
            {"name": "b", "expression": " undefined "},
            {"name": "c__d", "expression": "authorizer.requestResource.check('get').allowed()"},
            {"name": "e", "expression": "params.x"},
        ]
    },
}
BAD_RULES: dict[str, dict[str, Any]] = {
    "nothing": {"validations": None},
    "empty": {"validations": [{}]},
    "messages": {
        "validations": [
            {"expression": "true", "message": " ", "messageExpression": " ", "reason": "Teapot"},
            {"expression": "true", "message": "a\nb"},
        ]
    },
    "expressions": {
        "validations": [
            {"expression": " object.x "},
            {"expression": "object.x == ", "messageExpression": "1"},
            {"expression": "variables.x == 1", "messageExpression": "authorizer.x"},
            {"expression": "request.none == 1 && 'a' > 1", "messageExpression": "params.x"},
            {"expression": "'a'.matches('[') || object.x.matches('a')"},
            {"expression": "[1, 'a'].size() > 0"},
        ]
    },
    "typed-variables": {
        "variables": [
            {"name": "a", "expression": "1"},
            {"name": "b", "expression": "[variables.a]"},
            {"name": "c", "expression": "request"},
        ],
        "validations": [
            {"expression": "variables.a == 'x' || variables.b == [''] || variables.none || variables.c.x"},
            {"expression": "variables.c.x == 1", "messageExpression": "string(variables.b[0])"},
        ],
    },
    "annotation-types": {
        "auditAnnotations": [
            {"key": "a", "valueExpression": " 1 "},
            {"key": "b", "valueExpression": "null"},
            {"key": "c", "valueExpression": "object.x"},
            {"key": "d", "valueExpression": "timestamp('2020-01-01T00:00:00Z')"},
        ]
    },
    "annotations": {
        "auditAnnotations": [
            {"key": "a b", "valueExpression": "'x'"},
            {"key": "c", "valueExpression": " "},
            {"key": "c", "valueExpression": "'x'"},
        ]
    },
}
BAD_MUTATIONS: dict[str, dict[str, Any]] = {
    "no-mutations": {"mutations": None},
    "no-reinvocation": {"reinvocationPolicy": ""},
    "reinvocation": {"reinvocationPolicy": "Always"},
    "deletes": {"matchConstraints": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}},
    "expressions": {
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": " JSONPatch{op: 'x'} "}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 1}]"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[Object{}]"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: variables.x}]"}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object.spec{}"}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "{'spec': {}}"}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Objects{}"}},
        ]
    },
    "patch-types": {
        "mutations": [
            {},
            {"patchType": "Merge"},
            {"patchType": "JSONPatch"},
            {"patchType": "ApplyConfiguration", "jsonPatch": {"expression": OPERATIONS}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": " "}},
            {**PATCH, "applyConfiguration": {"expression": "Object{}"}},
        ]
    },
}
BAD_BINDINGS: dict[str, dict[str, Any]] = {
    "no-name": {"policyName": ""},
    "bad-name": {"policyName": "A_b"},
    "param-both": {"paramRef": {"name": "a/b", "selector": {}, "parameterNotFoundAction": "Maybe"}},
    "param-neither": {"paramRef": {}},
    "match": {"matchResources": {"matchPolicy": "Nearly", "resourceRules": [{}]}},
}
BAD_ACTIONS: dict[str, dict[str, Any]] = {
    "no-actions": {"validationActions": None},
    "actions": {"validationActions": ["Deny", "Deny", "Warn", "Tell"]},
}


def _has_status(obj: Any) -> bool:
    observed: int = obj.get("status", {}).get("observedGeneration", 0)
    return observed == obj["metadata"].get("generation")


def _area() -> Area:
    area = Area("admission-policies", namespace=False)
    kinds = [
        ("validatingadmissionpolicies", VALIDATING, {**BAD_POLICIES, **BAD_RULES}),
        ("mutatingadmissionpolicies", MUTATING, {**BAD_POLICIES, **BAD_MUTATIONS}),
        ("validatingadmissionpolicybindings", BINDING, {**BAD_BINDINGS, **BAD_ACTIONS}),
        ("mutatingadmissionpolicybindings", {"policyName": "none.example.com"}, BAD_BINDINGS),
    ]
    for plural, spec, bad in kinds:
        path = f"{GROUP}/{plural}"
        for name, fields in bad.items():
            area.post(
                f"{plural}-{name}", path, {"metadata": {"name": "diff"}, "spec": {**spec, **fields}}, 422
            )
        area.post(f"{plural}-no-spec", path, {"metadata": {"name": "diff"}}, 422)
        area.post(
            f"{plural}-create",
            path,
            {"metadata": {"name": "diff"}, "spec": spec},
            keep={"version": "metadata.resourceVersion"},
        )
        area.put(f"{plural}-put", f"{path}/diff", {"metadata": {"name": "diff"}, "spec": spec}, 422)
        changed = {"metadata": {"name": "diff", "resourceVersion": "${version}"}}
        other: dict[str, Any] = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
        if plural.endswith("bindings"):
            other = {"paramRef": {"parameterNotFoundAction": "Deny", "selector": {"matchLabels": {"a": "b"}}}}
        # It has a status soon after each change.
        has_status = plural == "validatingadmissionpolicies"
        if has_status:
            keep = {"version": "metadata.resourceVersion"}
            area.get(f"{plural}-status", f"{path}/diff", until=_has_status, keep=keep)
            other |= WRONG_TYPES
        area.put(f"{plural}-change", f"{path}/diff", {**changed, "spec": {**spec, **other}})
        if has_status:
            area.get(f"{plural}-status-again", f"{path}/diff", until=_has_status)
        area.patch(f"{plural}-label", "merge", f"{path}/diff", {"metadata": {"labels": {"a": "b"}}})
        area.get(f"{plural}-get", f"{path}/diff")
        area.get(f"{plural}-table", f"{path}/diff", headers=TABLE)
        area.delete(f"{plural}-delete", f"{path}/diff")
    return area


AREA = _area()


@pytest.fixture(scope="module")
def run(kube: Server, podlife_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AreaRun]:
    real, ours = Target(kube), Target(podlife_server)
    with controller_manager(tmp_path_factory.mktemp("kcm"), kube, [STATUS_CONTROLLER]):
        yield AreaRun(AREA, real, ours)
    real.close()
    ours.close()


@pytest.mark.parametrize("step", AREA.steps, ids=lambda step: step.name)
def test_both_servers_answer_the_same(step: Step, run: AreaRun) -> None:
    outcome = run.outcome(step)
    assert outcome.real["code"] == step.code, outcome.real
    assert not outcome.differences, "\n".join(map(str, outcome.differences))
