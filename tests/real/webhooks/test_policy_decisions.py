"""The same policies and requests on kube-apiserver and on podlife: equal answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.real.differential.compare import differences_between
from tests.real.differential.normalise import Normaliser
from tests.real.differential.target import Target
from tests.real.webhooks.cases import Request, config_map, send
from tests.real.webhooks.differences import DIFFERENCES
from tests.real.webhooks.policy_cases import CASES, RULE, PolicyCase, add, json_patch

GROUP = "/apis/admissionregistration.k8s.io/v1"
READY = {"validating": "policies-validating", "mutating": "policies-mutating"}


def _put_in_force(target: Target, kind: str, name: str, namespace: str, spec: Any, binding: Any) -> None:
    """A policy for the requests in one namespace."""
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    constraints = {"resourceRules": [RULE], **spec.get("matchConstraints", {}), **selector}
    whole = {**spec, "matchConstraints": constraints}
    bound = {
        "policyName": name,
        "matchResources": selector,
        **({"validationActions": ["Deny"]} if kind == "validating" else {}),
        **binding,
    }
    for plural, each in (("policies", whole), ("policybindings", bound)):
        path = f"{GROUP}/{kind}admission{plural}"
        made = send(target, Request("POST", path, {"metadata": {"name": name}, "spec": each}))
        assert made.code == 201, made


def _is_in_force(target: Target, kind: str) -> bool:
    path = f"/api/v1/namespaces/{READY[kind]}/configmaps?dryRun=All"
    answer = send(target, Request("POST", path, config_map(x="1")))
    return answer.code == 422 if kind == "validating" else "ready" in answer.body.get("data", {})


def _prepare(target: Target) -> None:
    for case in CASES:
        send(target, Request("POST", "/api/v1/namespaces", {"metadata": {"name": case.namespace}}))
        for request in case.before:
            send(target, request, case.namespace)
    for case in CASES:
        _put_in_force(target, case.kind, case.namespace, case.namespace, case.spec, case.binding)
    # The last ones: when they are in force, all are.
    last = {
        "validating": {"validations": [{"expression": "false"}]},
        "mutating": json_patch(add("/data/ready", "''")),
    }
    for kind, spec in last.items():
        send(target, Request("POST", "/api/v1/namespaces", {"metadata": {"name": READY[kind]}}))
        _put_in_force(target, kind, READY[kind], READY[kind], spec, {})
    for kind in last:
        until_blocking(lambda: _is_in_force(target, kind), f"no {kind} policy is in force", seconds=60)  # noqa: B023


@pytest.fixture(scope="module")
def targets(kube: Server, podlife_server: Server) -> Iterator[tuple[Target, Target]]:
    both = Target(kube), Target(podlife_server)
    for target in both:
        _prepare(target)
    yield both
    for target in both:
        for kind in READY:
            for plural in ("policybindings", "policies"):
                send(target, Request("DELETE", f"{GROUP}/{kind}admission{plural}"))
        target.close()


def _observed(target: Target, case: PolicyCase) -> list[Any]:
    normaliser = Normaliser()
    found = []
    for index, request in enumerate(case.requests):
        answer = send(target, request, case.namespace)
        normaliser.begin(str(index))
        warnings = answer.headers.get("Warning", [])
        found.append({"code": answer.code, "body": normaliser.body(answer.body), "warnings": warnings})
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_servers_decide_the_same(case: PolicyCase, targets: tuple[Target, Target]) -> None:
    real, ours = (_observed(target, case) for target in targets)
    known = DIFFERENCES.get(case.namespace, {})
    found = differences_between(real, ours)
    unknown = [each for each in found if each.path not in known]
    assert not unknown, "\n".join(map(str, unknown))
    assert {each.path for each in found} == set(known), "a listed difference is gone"
