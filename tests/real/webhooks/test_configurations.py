"""Webhook configurations, good and bad, are answered as kube-apiserver answers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.real_parts import Server
from tests.real.differential.compare import AreaRun
from tests.real.differential.steps import Area, Step
from tests.real.differential.target import Target

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
# It matches no request of any other test.
RULE: dict[str, Any] = {
    "apiGroups": ["none.example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nothings"],
}
HOOK: dict[str, Any] = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://example.com/x"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

INVALID: dict[str, dict[str, Any]] = {
    "no-name": {"name": ""},
    "short-name": {"name": "a.b"},
    "bad-name": {"name": "A_b.example.com"},
    "no-effects": {"sideEffects": None},
    "some-effects": {"sideEffects": "Some"},
    "no-versions": {"admissionReviewVersions": None},
    "unknown-versions": {"admissionReviewVersions": ["v7"]},
    "bad-versions": {"admissionReviewVersions": ["v1", "v1", "1x", "-"]},
    "long-timeout": {"timeoutSeconds": 31},
    "no-timeout": {"timeoutSeconds": 0},
    "bad-policies": {"failurePolicy": "Maybe", "matchPolicy": "Nearly"},
    "bad-reinvocation": {"reinvocationPolicy": "Always"},
    "bad-conditions": {
        "matchConditions": [
            {"name": "syntax", "expression": "object.x == "},
            {"name": "type", "expression": " 1 + 1 "},
            {"name": "dynamic", "expression": "object.x"},
            {"name": "unknown", "expression": "params.x == variables.y"},
            {"name": "field", "expression": "request.object.x == '' || namespaceObject.metadata.uid == ''"},
        ]
    },
    "no-client": {"clientConfig": {}},
    "two-clients": {"clientConfig": {"url": "https://x/", "service": {"name": "a", "namespace": "b"}}},
    "http": {"clientConfig": {"url": "http://example.com/x"}},
    "no-host": {"clientConfig": {"url": "https:///x"}},
    "everything-in-url": {"clientConfig": {"url": "https://me:secret@example.com/x?y=z#f"}},
    "no-url": {"clientConfig": {"url": ""}},
    "bad-port-in-url": {"clientConfig": {"url": "https://example.com:x/"}},
    "empty-service": {"clientConfig": {"service": {}}},
    "bad-port": {"clientConfig": {"service": {"name": "a", "namespace": "b", "port": 70000}}},
    "bad-path": {"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "x//Y/"}}},
    "empty-path": {"clientConfig": {"service": {"name": "a", "namespace": "b", "path": "//"}}},
    "bad-selectors": {
        "namespaceSelector": {"matchLabels": {"a b": "c d"}},
        "objectSelector": {
            "matchExpressions": [{"key": "a", "operator": "Is"}, {"key": "b", "operator": "In"}]
        },
    },
    "empty-rule": {"rules": [{}]},
    "wild-rule": {
        "rules": [
            {
                "apiGroups": ["*", "x"],
                "apiVersions": ["*", "", "v1"],
                "operations": ["*", "CREATE", "READ"],
                "resources": ["*", "pods", ""],
                "scope": "Some",
            }
        ]
    },
    "wild-resources": {
        "rules": [{**RULE, "resources": ["*/*", "pods/*", "pods/status", "*/status", "x/status", "a", "*"]}]
    },
    "conditions": {
        "matchConditions": [{}, {"name": "a b", "expression": "true"}, {"name": "", "expression": "true"}]
    },
    "same-conditions": {
        "matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]
    },
    "bad-bundle": {"clientConfig": {"url": "https://example.com/x", "caBundle": "%"}},
    "wrong-types": {"rules": "all"},
}


def _configuration(name: str, *hooks: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "webhooks": list(hooks)}


def _area() -> Area:
    area = Area("webhook-configurations", namespace=False)
    for name, fields in INVALID.items():
        code = 400 if name in ("bad-bundle", "wrong-types") else 422
        area.post(f"mutating-{name}", MUTATING, _configuration(name, {**HOOK, **fields}), code)
    for name in ("no-effects", "wild-rule", "http"):
        body = _configuration(name, {**HOOK, **INVALID[name]})
        area.post(f"validating-{name}", VALIDATING, body, 422)
    area.post("same-names", VALIDATING, _configuration("same", HOOK, HOOK), 422)
    for kind, path in (("mutating", MUTATING), ("validating", VALIDATING)):
        area.post(
            f"{kind}-empty",
            path,
            {"metadata": {"name": "diff-empty"}},
            keep={"version": "metadata.resourceVersion"},
        )
        area.put(f"{kind}-put-without-version", f"{path}/diff-empty", _configuration("diff-empty", HOOK), 422)
        changed = _configuration("diff-empty", HOOK)
        changed["metadata"]["resourceVersion"] = "${version}"
        area.put(f"{kind}-put", f"{path}/diff-empty", changed)
        service = {"clientConfig": {"service": {"name": "a", "namespace": "b"}, "caBundle": "eA=="}}
        other = {**HOOK, **service, "name": "b.example.com", "matchConditions": []}
        area.patch(f"{kind}-patch", "strategic", f"{path}/diff-empty", {"webhooks": [other]})
        area.patch(f"{kind}-label", "merge", f"{path}/diff-empty", {"metadata": {"labels": {"a": "b"}}})
        area.patch(f"{kind}-invalid-patch", "merge", f"{path}/diff-empty", {"webhooks": [{"name": "x"}]}, 422)
        area.get(f"{kind}-table", f"{path}/diff-empty", headers=TABLE)
        area.get(f"{kind}-get", f"{path}/diff-empty")
        area.delete(f"{kind}-delete", f"{path}/diff-empty")
        area.post(f"{kind}-static", path, {"metadata": {"name": "diff.static.k8s.io"}})
        area.delete(f"{kind}-static-delete", f"{path}/diff.static.k8s.io")
    return area


AREA = _area()


@pytest.fixture(scope="module")
def run(kube: Server, podlife_server: Server) -> Iterator[AreaRun]:
    real, ours = Target(kube), Target(podlife_server)
    yield AreaRun(AREA, real, ours)
    real.close()
    ours.close()


@pytest.mark.parametrize("step", AREA.steps, ids=lambda step: step.name)
def test_both_servers_answer_the_same(step: Step, run: AreaRun) -> None:
    outcome = run.outcome(step)
    assert outcome.real["code"] == step.code, outcome.real
    assert not outcome.differences, "\n".join(map(str, outcome.differences))
