"""What extends the server, at its worst: rules and policies that no author would write, webhooks that answer anything,
other API servers that describe anything. Every request is answered, and nothing is logged as a failure of the server.
"""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.apiserver.admission.webhooks import ClientConfig
from podlife.apiserver.aggregation.remote_api import RemoteApi, discovered
from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.catalog import RemoteVersion
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from tests.component.apiserver.requests import CONFIG_MAPS, ask
from tests.component.apiserver.test_custom_resources import CRDS, GROUP, WIDGETS, definition, widget
from tests.fuzz.conftest import share
from tests.fuzz.test_cel_parser import mutated
from tests.fuzz.values import anything, broken_bytes
from tests.kit.embedded import start
from tests.kit.wait import until
from tests.kit.webhook_server import webhook

_FEW = share(0.06)
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
_CONFIG_MAP = {"metadata": {"name": "a"}, "data": {"x": "1", "y": "z" * 50}}


@pytest.fixture(autouse=True)
def _no_own_failure(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    failures = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert failures == []


# Some that compile on an object or a value, and are expensive, wrong or of another type.
_expressions = st.one_of(
    mutated(),
    st.sampled_from(
        [
            *(
                "true",
                "false",
                "self == self",
                "self.x",
                "object.data.all(k, object.data[k] != '')",
                "1/0 == 1",
            ),
            "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))",
            *("variables.v", "params.data.x == '1'", "oldObject.data == object.data", "has(object.spec)"),
            *("request.userInfo.groups.exists(g, g == 'x')", "'a'.matches('(a*)*b')", "string(object)"),
            *("'x' * 3", "[1, 2, 3].map(x, x * x)", "namespaceObject.metadata.name", "authorizer"),
            "[JSONPatch{op: 'add', path: '/data/n', value: 'm'}]",
            "[JSONPatch{op: 'remove', path: '/metadata'}]",
            "Object{data: {'n': 'm'}}",
            "Object{metadata: Object.metadata{name: 'other', managedFields: []}}",
        ]
    ),
)


@_FEW
@given(
    st.lists(
        st.fixed_dictionaries(
            {"rule": _expressions},
            optional={
                "message": st.text(max_size=10),
                "messageExpression": _expressions,
                "fieldPath": st.sampled_from([".spec", ".spec['a']", ".", "spec", "['"]),
                "reason": st.sampled_from(["FieldValueInvalid", "FieldValueForbidden", "Odd"]),
                "optionalOldSelf": st.booleans(),
            },
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(anything, min_size=1, max_size=3),
)
def test_rules_of_a_definition_are_refused_or_judge_any_instance(rules: list[Any], values: list[Any]) -> None:
    async def send() -> None:
        handler = await start()
        inner = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec = inner | {
            "properties": {"a": {"type": "string", "maxLength": 10}},
            "x-kubernetes-validations": rules,
        }
        crd = definition(schema={"type": "object", "properties": {"spec": spec}})
        code, answer = await ask(handler, "POST", CRDS, crd)
        assert code in (201, 422), answer
        if code != 201:
            return
        async with asyncio.TaskGroup() as group:
            task = group.create_task(CustomResourceDefinitionController(handler.registry).run())
            await until(lambda: handler.registry.catalog.find(GROUP, "v1", "widgets"))
            for value in values:
                code, answer = await ask(handler, "POST", WIDGETS, widget("w", spec=value))
                assert code < 500, answer
                change = {"spec": {"a": "b"}}
                code, answer = await ask(handler, "PATCH", f"{WIDGETS}/w", change, kind="merge-patch+json")
                assert code < 500, answer
            task.cancel()

    asyncio.run(send())


@st.composite
def policies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    named = st.fixed_dictionaries({"name": st.sampled_from(["v", "w"]), "expression": _expressions})
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [_RULE]},
        "failurePolicy": draw(st.sampled_from(["Fail", "Ignore"])),
        "variables": draw(st.lists(named, max_size=2, unique_by=lambda each: each["name"])),
        "matchConditions": draw(st.lists(named, max_size=2, unique_by=lambda each: each["name"])),
    }
    if draw(st.booleans()):
        validation = st.fixed_dictionaries(
            {"expression": _expressions}, optional={"messageExpression": _expressions}
        )
        spec["validations"] = draw(st.lists(validation, min_size=1, max_size=3))
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": draw(_expressions)}]
        return "validating", spec
    kinds = [("JSONPatch", "jsonPatch"), ("ApplyConfiguration", "applyConfiguration")]
    drawn = draw(st.lists(st.tuples(st.sampled_from(kinds), _expressions), min_size=1, max_size=2))
    spec["mutations"] = [{"patchType": kind, field: {"expression": text}} for (kind, field), text in drawn]
    spec["reinvocationPolicy"] = draw(st.sampled_from(["Never", "IfNeeded"]))
    return "mutating", spec


@_FEW
@given(policies())
def test_a_policy_is_refused_or_judges_requests(policy: tuple[str, dict[str, Any]]) -> None:
    kind, spec = policy

    async def send() -> None:
        handler = await start()
        path = f"{_ADMISSION}/{kind}admissionpolicies"
        code, answer = await ask(handler, "POST", path, {"metadata": {"name": "p"}, "spec": spec})
        assert code in (201, 422), answer
        bound: dict[str, Any] = {"policyName": "p"}
        if kind == "validating":
            bound["validationActions"] = ["Deny", "Audit"]
        body = {"metadata": {"name": "b"}, "spec": bound}
        assert (await ask(handler, "POST", f"{_ADMISSION}/{kind}admissionpolicybindings", body))[0] == 201
        code, answer = await ask(handler, "POST", CONFIG_MAPS, _CONFIG_MAP)
        # An expression that fails is upstream's 500 for a mutation.
        assert code < 500 or "policy 'p'" in answer["message"], answer

    asyncio.run(send())


_OPERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "no"]),
        "path": st.sampled_from(
            ["", "/", "/metadata", "/metadata/name", "/data/x", "/data/-", "/kind", "/x/y/z"]
        ),
        "from": st.sampled_from(["", "/metadata", "/data"]),
        "value": anything,
    },
)
_patches = st.one_of(st.lists(_OPERATIONS, max_size=3), anything).map(
    lambda value: b64encode(json.dumps(value).encode("utf-8", "replace")).decode()
)


@st.composite
def reviews(draw: st.DrawFn) -> bytes:
    """The answer of a webhook; `UID` stands for that of its request."""
    response = {"uid": "UID", "allowed": True}
    fields: dict[str, st.SearchStrategy[Any]] = {
        "allowed": st.booleans(),
        "patch": _patches,
        "patchType": st.sampled_from(["JSONPatch", "MergePatch", "", None]),
        "warnings": st.one_of(st.lists(st.text(max_size=300), max_size=3), anything),
        "auditAnnotations": anything,
        "status": st.one_of(
            st.fixed_dictionaries({"code": st.sampled_from([0, 200, 418, 99, 10**9, -1])}), anything
        ),
        "uid": anything,
    }
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=4)):
        response[name] = draw(fields[name])
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    if draw(st.integers(0, 5)) == 0:
        whole[draw(st.sampled_from(sorted(whole)))] = draw(anything)
    data = json.dumps(whole).encode("utf-8", "replace")
    return draw(broken_bytes(data)) if draw(st.integers(0, 5)) == 0 else data


@_FEW
@given(reviews(), st.sampled_from(["Mutating", "Validating"]), st.sampled_from(["Fail", "Ignore"]))
def test_whatever_a_webhook_answers_a_request_is_decided(answered: bytes, kind: str, policy: str) -> None:
    async def call(_: ClientConfig, body: bytes, seconds: float) -> bytes:
        uid = json.loads(body)["request"]["uid"]
        return answered.replace(b'"UID"', json.dumps(uid).encode())

    async def send() -> None:
        store = MemoryStore()
        handler = assemble(store, clock=SystemClock(), authenticator=Authenticator(), call_webhook=call)
        await create_system_namespaces(handler.registry, ADMIN)
        hook = webhook("any", {"url": "https://hook.example.com/"}) | {"failurePolicy": policy}
        body = {"metadata": {"name": "c"}, "webhooks": [hook]}
        path = f"{_ADMISSION}/{kind.lower()}webhookconfigurations"
        code, answer = await ask(handler, "POST", path, body)
        assert code == 201, answer
        code, answer = await ask(handler, "POST", CONFIG_MAPS, _CONFIG_MAP)
        assert code in (201, *range(400, 600)), answer
        if code != 201:
            assert answer["kind"] == "Status", answer
        # Neither what is stored nor the server has suffered.
        code, listed = await ask(handler, "GET", CONFIG_MAPS)
        assert code == 200
        assert all(each["metadata"]["name"] == "a" for each in listed["items"])

    asyncio.run(send())


_API = RemoteApi("v1.fish.example.com", "fish.example.com", "v1", "default", "fish", 443, b"", False, 1, 1)
_ENTRY = st.fixed_dictionaries(
    {"name": st.sampled_from(["trouts", "trouts/status", "a/b/c", "", "/"]), "kind": st.just("Trout")},
    optional={
        "namespaced": st.one_of(st.booleans(), anything),
        "verbs": st.one_of(st.just(["get"]), anything),
        "shortNames": anything,
        "categories": anything,
        "singularName": anything,
        "group": anything,
        "version": anything,
    },
)


@_FEW
@given(st.one_of(anything, st.lists(st.one_of(_ENTRY, anything), max_size=4)))
def test_whatever_another_server_says_that_it_serves_discovery_is_answered(resources: Any) -> None:
    async def send() -> None:
        handler = await start()
        try:
            found = discovered(resources, _API)
        except ValueError:
            return
        version = RemoteVersion(1, 1, found, is_fresh=True)
        handler.registry.catalog.set_remote({("fish.example.com", "v1"): version})
        aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        for path, accept in (("/apis", ""), ("/apis", aggregated), ("/apis/fish.example.com", "")):
            code, answer = await ask(handler, "GET", path, accept=accept)
            assert code == 200, answer

    asyncio.run(send())
