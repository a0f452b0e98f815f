"""Admission policies in force, through the handler."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.bootstrap import create_kubernetes_service, create_system_objects
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.policy_status import PolicyStatusController
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from tests.component.apiserver.requests import CONFIG_MAPS, ask, send
from tests.kit.wait import until
from tests.workloads.runs import at_work

GROUP = "/apis/admissionregistration.k8s.io/v1"
RULE: dict[str, Any] = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["configmaps"],
}
Json = dict[str, Any]
GOOD = "object.data.x == 'good'"


async def api() -> ApiHandler:
    handler = assemble(MemoryStore(), clock=SystemClock(), authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    return handler


async def make(handler: ApiHandler, plural: str, name: str, spec: Json) -> None:
    code, answer = await ask(handler, "POST", f"{GROUP}/{plural}", {"metadata": {"name": name}, "spec": spec})
    assert code == 201, answer


async def enforce(handler: ApiHandler, *, binding: Json | None = None, **spec: Any) -> None:
    whole = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": GOOD}], **spec}
    await make(handler, "validatingadmissionpolicies", "policy", whole)
    bound = {"policyName": "policy", "validationActions": ["Deny"], **(binding or {})}
    await make(handler, "validatingadmissionpolicybindings", "binding", bound)


def config_map(name: str = "a", **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def test_a_policy_denies_what_does_not_hold_and_admits_the_rest() -> None:
    handler = await api()
    await enforce(handler)
    code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map(x="bad"))
    place = "ValidatingAdmissionPolicy 'policy' with binding 'binding'"
    said = f"{place} denied request: failed expression: {GOOD}"
    assert (code, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == f'configmaps "a" is forbidden: {said}'
    assert answer["details"]["causes"] == [{"message": said}]
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map(x="good")))[0] == 201
    change = {"data": {"x": "bad"}}
    code, _ = await ask(handler, "PATCH", f"{CONFIG_MAPS}/a", change, kind="merge-patch+json")
    assert code == 422


async def test_a_policy_without_a_binding_does_nothing() -> None:
    handler = await api()
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": GOOD}]}
    await make(handler, "validatingadmissionpolicies", "policy", spec)
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map(x="bad")))[0] == 201


async def test_no_policy_keeps_the_server_from_starting() -> None:
    handler = assemble(MemoryStore(), clock=SystemClock(), authenticator=Authenticator())
    everything = {**RULE, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    denial: Json = {
        "matchConstraints": {"resourceRules": [everything]},
        "validations": [{"expression": "false"}],
    }
    await enforce(handler, **denial)
    await create_system_objects(handler.registry)
    await create_kubernetes_service(handler.registry, 6443)
    assert (await ask(handler, "GET", "/api/v1/namespaces/default/services/kubernetes"))[0] == 200
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map()))[0] == 422


async def test_a_reason_decides_the_code() -> None:
    handler = await api()
    await enforce(handler, validations=[{"expression": GOOD, "reason": "Forbidden"}])
    code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map(x="bad"))
    assert (code, answer["reason"]) == (403, "Forbidden")


async def test_a_warning_is_sent_and_the_request_admitted() -> None:
    handler = await api()
    await enforce(handler, binding={"validationActions": ["Warn", "Audit"]})
    response = await send(handler, "POST", CONFIG_MAPS, config_map(x="bad"))
    assert response.status == 201
    place = "ValidatingAdmissionPolicy 'policy' with binding 'binding'"
    text = f"Validation failed for {place}: failed expression: {GOOD}"
    assert ("Warning", f'299 - "{text}"') in list(response.headers)


@pytest.mark.parametrize(("policy", "code"), [("Fail", 422), ("Ignore", 201)])
async def test_an_expression_that_fails_is_left_to_the_failure_policy(policy: str, code: int) -> None:
    handler = await api()
    await enforce(handler, validations=[{"expression": "object.data.none == ''"}], failurePolicy=policy)
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map(x="good")))[0] == code


@pytest.mark.parametrize(
    ("match", "name", "code"),
    [
        ({"resourceRules": [{**RULE, "resourceNames": ["a"]}]}, "a", 422),
        ({"resourceRules": [{**RULE, "resourceNames": ["a"]}]}, "b", 201),
        ({"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["a"]}]}, "a", 201),
        ({"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["a"]}]}, "b", 422),
        ({"resourceRules": [{**RULE, "operations": ["UPDATE"]}]}, "a", 201),
        ({"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a": "b"}}}, "a", 201),
        ({"resourceRules": [RULE], "namespaceSelector": {"matchLabels": {"a": "b"}}}, "a", 201),
        (
            {
                "resourceRules": [RULE],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            },
            "a",
            422,
        ),
    ],
)
async def test_constraints_of_policies_and_bindings(match: Json, name: str, code: int) -> None:
    for spec, binding in (({"matchConstraints": match}, {}), ({}, {"matchResources": match})):
        handler = await api()
        await enforce(handler, binding=binding, **spec)
        assert (await ask(handler, "POST", CONFIG_MAPS, config_map(name)))[0] == code


async def test_parameters_are_read_where_the_binding_says() -> None:
    handler = await api()
    path = "/api/v1/namespaces/kube-public/configmaps"
    await ask(handler, "POST", path, config_map("params", x="special"))
    reference = {"name": "params", "namespace": "kube-public", "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    rule = {"expression": "(object == null ? oldObject : object).data.x == params.data.x"}
    await enforce(handler, binding={"paramRef": reference}, paramKind=kind, validations=[rule])
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map(x="special")))[0] == 201
    assert (await ask(handler, "POST", CONFIG_MAPS, config_map("b", x="good")))[0] == 422
    # Removing them concerns the policy, too: their own content is what they ask for.
    assert (await ask(handler, "DELETE", f"{path}/params"))[0] == 200
    code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map("c", x="special"))
    assert code == 422
    assert answer["message"].endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )


async def mutate(handler: ApiHandler, name: str, *expressions: str, **spec: Any) -> None:
    whole = {
        "matchConstraints": {"resourceRules": [{**RULE, "operations": ["CREATE"]}]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in expressions],
        "reinvocationPolicy": "Never",
        **spec,
    }
    await make(handler, "mutatingadmissionpolicies", name, whole)
    await make(handler, "mutatingadmissionpolicybindings", name, {"policyName": name})


async def test_a_mutating_policy_changes_the_object_before_it_is_validated() -> None:
    handler = await api()
    await enforce(handler)
    await mutate(handler, "policy", "[JSONPatch{op: 'add', path: '/data', value: {'x': 'good'}}]")
    code, made = await ask(handler, "POST", CONFIG_MAPS, config_map())
    assert (code, made["data"]) == (201, {"x": "good"})


async def test_a_mutation_that_fails_denies_in_upstreams_words() -> None:
    handler = await api()
    await mutate(handler, "policy", "[JSONPatch{op: 'remove', path: '/spec/x'}]")
    code, answer = await ask(handler, "POST", CONFIG_MAPS, config_map())
    assert (code, answer["reason"]) == (403, "Invalid")
    assert answer["message"].startswith("policy 'policy' with binding 'policy' denied request: JSON Patch: ")


async def test_a_policy_runs_again_if_the_object_was_changed_after_it() -> None:
    handler = await api()
    count = "string(int(object.data.?n.orValue('0')) + 1)"
    again = f"[JSONPatch{{op: 'add', path: '/data/n', value: {count}}}]"
    await mutate(handler, "again", again, reinvocationPolicy="IfNeeded")
    await mutate(handler, "once", again.replace("n'", "m'").replace("?n", "?m"))
    _, made = await ask(handler, "POST", CONFIG_MAPS, config_map(x="good"))
    assert made["data"] == {"x": "good", "n": "2", "m": "1"}


async def test_a_policy_decides_about_custom_resources_and_their_parameters() -> None:
    handler = await api()
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "metadata": {"name": "tests.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "tests", "kind": "Test"},
            "scope": "Cluster",
            "versions": [version],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await ask(handler, "POST", definitions, crd))[0] == 201
    async with at_work(CustomResourceDefinitionController(handler.registry).run):
        path = "/apis/example.com/v1/tests"
        await until(lambda: handler.registry.catalog.find("example.com", "v1", "tests") is not None)
        typed = {"apiVersion": "example.com/v1", "kind": "Test"}
        limit = {**typed, "metadata": {"name": "limit"}, "spec": {"n": 3}}
        assert (await ask(handler, "POST", path, limit))[0] == 201
        rule = {**RULE, "apiGroups": ["example.com"], "resources": ["tests"], "operations": ["CREATE"]}
        await enforce(
            handler,
            binding={"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}},
            matchConstraints={"resourceRules": [rule]},
            paramKind=typed,
            validations=[{"expression": "object.spec.n <= params.spec.n"}],
        )
        await mutate(
            handler,
            "policy",
            "[JSONPatch{op: 'add', path: '/spec/n', value: object.spec.n + 1}]",
            matchConstraints={"resourceRules": [rule]},
        )
        code, made = await ask(handler, "POST", path, {**typed, "metadata": {"name": "a"}, "spec": {"n": 2}})
        assert (code, made["spec"]) == (201, {"n": 3})
        assert (await ask(handler, "POST", path, {**limit, "metadata": {"name": "b"}}))[0] == 422


async def test_the_status_tells_what_type_checking_found() -> None:
    handler = await api()
    path = f"{GROUP}/validatingadmissionpolicies/policy"
    async with at_work(PolicyStatusController(handler.registry).run):
        await enforce(handler, validations=[{"expression": "object.data.x == 1"}])

        async def status() -> Json:
            found: Json = (await ask(handler, "GET", path))[1].get("status", {})
            return found

        found = await until(status)
        [warning] = found["typeChecking"]["expressionWarnings"]
        assert warning["warning"].startswith("/v1, Kind=ConfigMap: ERROR: <input>:1:15: ")
        assert found["observedGeneration"] == 1
