"""Policies and requests that both servers are compared with: what they answer. One namespace for each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.real.webhooks.cases import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MERGE,
    PODS,
    Request,
    config_map,
    deployment,
    pod,
    rule,
)

Json = dict[str, Any]
RULE = rule("configmaps")
CREATE = [Request("POST", CONFIG_MAPS, config_map(x="1"))]
PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
TEN = "[1,2,3,4,5,6,7,8,9,10]"


@dataclass(frozen=True)
class PolicyCase:
    """`before` is sent while there are no policies."""

    name: str
    spec: Json
    requests: Sequence[Request] = field(default_factory=lambda: CREATE)
    binding: Json = field(default_factory=dict)
    before: Sequence[Request] = ()

    @property
    def namespace(self) -> str:
        return f"policy-{self.name}"

    @property
    def kind(self) -> str:
        return "mutating" if "mutations" in self.spec else "validating"


def check(expression: str, **others: Any) -> Json:
    return {"validations": [{"expression": expression, **others}]}


def loops(depth: int) -> str:
    """An expression of ten to the power of `depth` steps."""
    inner = "true"
    for index in range(depth):
        inner = f"{TEN}.all(v{index}, {inner})"
    return inner


def json_patch(*expressions: str, **others: Any) -> Json:
    return _mutations("JSONPatch", "jsonPatch", expressions, others)


def apply(*expressions: str, **others: Any) -> Json:
    return _mutations("ApplyConfiguration", "applyConfiguration", expressions, others)


def _mutations(kind: str, place: str, expressions: Sequence[str], others: Json) -> Json:
    mutations = [{"patchType": kind, place: {"expression": expression}} for expression in expressions]
    return {"mutations": mutations, "reinvocationPolicy": "Never", **others}


def conditions(*expressions: str) -> list[Json]:
    return [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]


def labelled(name: str, **data: str) -> Request:
    body = config_map(name, **data)
    body["metadata"]["labels"] = {"param": "yes"}
    return Request("POST", CONFIG_MAPS, body)


def add(path: str, value: str) -> str:
    return f'[JSONPatch{{op: "add", path: "{path}", value: {value}}}]'


UPDATES = [
    *CREATE,
    Request("PUT", CONFIG_MAPS + "/a", config_map(x="2")),
    Request("PATCH", CONFIG_MAPS + "/a", {"data": {"x": "3"}}, MERGE),
    Request("DELETE", CONFIG_MAPS + "/a"),
]
DEPLOYMENT = [Request("POST", DEPLOYMENTS, deployment())]
ON_DEPLOYMENTS = {"matchConstraints": {"resourceRules": [rule("deployments", group="apps")]}}
ON_PODS = {"matchConstraints": {"resourceRules": [rule("pods")]}}
ABSENT = {"name": "absent", "parameterNotFoundAction": "Deny"}

VALIDATING = [
    PolicyCase("holds", check("object.data.x == '1'")),
    PolicyCase("fails", check(" object.data.x == '2' ")),
    PolicyCase("message", check("false", message=" no ")),
    PolicyCase("said", check("false", message="no", messageExpression="'not ' + object.data.x + ' '")),
    PolicyCase("said-lines", check("false", message="no", messageExpression="'not\\n' + object.data.x")),
    PolicyCase("said-blank", check("false", messageExpression="'  '")),
    PolicyCase("said-error", check("false", message="no", messageExpression="'' + object.data.y")),
    PolicyCase("said-long", check("false", messageExpression=f"'{'x' * 5200}'")),
    PolicyCase("forbidden", check("false", reason="Forbidden")),
    PolicyCase("large", check("false", reason="RequestEntityTooLarge")),
    PolicyCase("error", check("object.data.y == '1'")),
    PolicyCase("error-ignored", check("object.data.y == '1'") | {"failurePolicy": "Ignore"}),
    PolicyCase("failure-not-ignored", check("false") | {"failurePolicy": "Ignore"}),
    PolicyCase("null", check("oldObject.data.x == '1'")),
    PolicyCase("second", {"validations": [{"expression": "true"}, {"expression": "has(object.binaryData)"}]}),
    PolicyCase("both", {"validations": [{"expression": "false"}, {"expression": "has(object.binaryData)"}]}),
    PolicyCase("expensive", check(loops(6))),
    PolicyCase("expensive-ignored", check(loops(6)) | {"failurePolicy": "Ignore"}),
    PolicyCase("all-expensive", {"validations": [{"expression": loops(5)}] * 30}),
    PolicyCase(
        "updates", check("request.operation != 'UPDATE' || oldObject.data.x != object.data.x"), UPDATES
    ),
    PolicyCase("deletes", check("request.operation != 'DELETE' || object != null"), UPDATES),
    PolicyCase("options", check("request.options.kind == 'CreateOptions' && !request.dryRun"), UPDATES),
    PolicyCase(
        "request",
        check(
            "false",
            messageExpression="request.resource.resource + request.kind.kind + request.requestKind.version"
            " + request.name + request.namespace + request.operation + string(has(request.subResource))"
            " + string(has(request.userInfo.username)) + string(size(request.userInfo.groups) > 0)",
        ),
    ),
    PolicyCase(
        "namespace",
        check(
            "false",
            messageExpression="namespaceObject.metadata.name + namespaceObject.status.phase"
            " + namespaceObject.spec.finalizers[0] + namespaceObject.metadata.labels['kubernetes.io/metadata.name']",
        ),
    ),
    PolicyCase("has-uid", check("has(object.metadata.uid)"), UPDATES),
    PolicyCase(
        "variables",
        {
            "variables": [
                {"name": "x", "expression": "object.data.x"},
                {"name": "n", "expression": "int(variables.x) + 1"},
                {"name": "list", "expression": "[variables.n, 5]"},
            ],
            "validations": [
                {"expression": "variables.n in variables.list"},
                {"expression": "variables.n == 7", "messageExpression": "'is ' + string(variables.list[0])"},
            ],
        },
    ),
    PolicyCase(
        "bad-variable",
        {
            "variables": [{"name": "y", "expression": "object.data.y"}],
            "validations": [{"expression": "true || variables.y == ''"}, {"expression": "variables.y == ''"}],
        },
    ),
    PolicyCase("condition-true", check("false") | {"matchConditions": conditions("object.data.x == '1'")}),
    PolicyCase(
        "condition-false", check("false") | {"matchConditions": conditions("true", "object.data.x == '2'")}
    ),
    PolicyCase(
        "condition-error", check("true") | {"matchConditions": conditions("object.data.y == ''", "true")}
    ),
    PolicyCase(
        "condition-errors",
        check("true") | {"matchConditions": conditions("object.data.y == ''", "object.data.z == ''")},
    ),
    PolicyCase(
        "condition-error-false",
        check("false") | {"matchConditions": conditions("object.data.y == ''", "false")},
    ),
    PolicyCase(
        "condition-ignored",
        check("false") | {"matchConditions": conditions("object.data.y == ''"), "failurePolicy": "Ignore"},
    ),
    PolicyCase("condition-expensive", check("true") | {"matchConditions": conditions(*[loops(5)] * 8)}),
    PolicyCase(
        "condition-params",
        check("false") | {"paramKind": PARAM_KIND, "matchConditions": conditions("params == null")},
    ),
    PolicyCase(
        "params",
        check("object.data.x == params.data.x", messageExpression="'not ' + params.data.x")
        | {"paramKind": PARAM_KIND},
        [*CREATE, Request("POST", CONFIG_MAPS, config_map("b", x="7"))],
        {"paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}},
        [Request("POST", CONFIG_MAPS, config_map("p", x="7"))],
    ),
    PolicyCase(
        "params-kind",
        check("false", messageExpression="'' + params.kind + params.apiVersion + params.metadata.name")
        | {"paramKind": PARAM_KIND},
        CREATE,
        {"paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}},
        [Request("POST", CONFIG_MAPS, config_map("p", x="7"))],
    ),
    PolicyCase(
        "params-selected",
        check("object.data.x != params.data.x") | {"paramKind": PARAM_KIND},
        [*CREATE, labelled("b", x="9")],
        {
            "paramRef": {
                "selector": {"matchLabels": {"param": "yes"}},
                "parameterNotFoundAction": "Deny",
            }
        },
        [labelled("p", x="8"), labelled("q", x="1")],
    ),
    PolicyCase("params-absent", check("true") | {"paramKind": PARAM_KIND}, binding={"paramRef": ABSENT}),
    PolicyCase(
        "params-allowed",
        check("false") | {"paramKind": PARAM_KIND},
        binding={"paramRef": {**ABSENT, "parameterNotFoundAction": "Allow"}},
    ),
    PolicyCase("params-none", check("params != null") | {"paramKind": PARAM_KIND}),
    PolicyCase(
        "params-unknown",
        check("true") | {"paramKind": {"apiVersion": "example.com/v1", "kind": "None"}},
        binding={"paramRef": ABSENT},
    ),
    PolicyCase(
        "authorizer",
        {
            "validations": [
                {"expression": "authorizer.group('').resource('pods').check('get').allowed()"},
                {"expression": "authorizer.requestResource.check('delete').allowed()"},
                {"expression": "authorizer.path('/healthz').check('get').allowed()"},
                {
                    "expression": "authorizer.serviceAccount('default', 'x').group('').resource('secrets')"
                    ".namespace('default').check('get').allowed()"
                },
            ]
        },
    ),
    PolicyCase("warns", check("false", message="no"), binding={"validationActions": ["Warn", "Audit"]}),
    PolicyCase(
        "annotations",
        check("true") | {"auditAnnotations": [{"key": "k", "valueExpression": "'' + object.data.y"}]},
    ),
    PolicyCase(
        "annotations-only",
        {"auditAnnotations": [{"key": "k", "valueExpression": "object.data.x == '1' ? 'one' : ''"}]},
    ),
    PolicyCase(
        "scale",
        {
            "matchConstraints": {"resourceRules": [rule("deployments/scale", group="apps")]},
            **check("object.spec.replicas < 5 && oldObject.spec.replicas == 1", message="too many"),
        },
        [
            *DEPLOYMENT,
            Request("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 7}}, MERGE),
            Request("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 2}}, MERGE),
        ],
    ),
    PolicyCase(
        "deployments",
        ON_DEPLOYMENTS
        | check("object.spec.replicas > 1", messageExpression="'got ' + string(object.spec.replicas)"),
        DEPLOYMENT,
    ),
    PolicyCase(
        "strings",
        ON_PODS
        | check(
            "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
            messageExpression="object.spec.containers.map(c, c.name + '=' + c.image).join(', ')",
        ),
        [Request("POST", PODS, pod())],
    ),
]

MUTATING = [
    PolicyCase("patch-label", json_patch(add("/metadata/labels", "{'a': 'b'}"))),
    PolicyCase("patch-data", json_patch(add("/data/y", "object.data.x + object.metadata.name")), UPDATES),
    PolicyCase(
        "patch-nothing", json_patch("object.data.x == '1' ? [] : [JSONPatch{op: 'remove', path: '/data'}]")
    ),
    PolicyCase(
        "patch-key",
        json_patch("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a~b/c'), value: 'v'}]"),
    ),
    PolicyCase(
        "patch-test",
        json_patch(
            "[JSONPatch{op: 'add', path: '/data/a', value: '1'}, JSONPatch{op: 'test', path: '/data/x', value: '2'}]"
        ),
    ),
    PolicyCase(
        "patch-tested",
        json_patch(
            "[JSONPatch{op: 'test', path: '/data/x', value: '1'},"
            " JSONPatch{op: 'move', from: '/data/x', path: '/data/y'}]"
        ),
    ),
    PolicyCase("patch-path", json_patch("[JSONPatch{op: 'remove', path: '/data/none'}]")),
    PolicyCase(
        "patch-path-ignored", json_patch("[JSONPatch{op: 'remove', path: '/no'}]", failurePolicy="Ignore")
    ),
    PolicyCase("patch-op", json_patch("[JSONPatch{op: 'jump', path: '/data/x'}]")),
    PolicyCase("patch-type", json_patch(add("/data", "5"))),
    PolicyCase("patch-unknown", json_patch(add("/spec", "{'a': 'b'}"))),
    PolicyCase("patch-error", json_patch(add("/data/y", "object.data.none"))),
    PolicyCase(
        "patch-object",
        ON_DEPLOYMENTS
        | json_patch(
            add(
                "/spec/template/spec/containers/-",
                "Object.spec.template.spec.containers{name: 'side', image: 'car'}",
            )
        ),
        DEPLOYMENT,
    ),
    PolicyCase(
        "patch-object-names",
        ON_DEPLOYMENTS | json_patch(add("/spec/strategy", "Object.spec{rollingUpdate: Object.spec.wrong{}}")),
        DEPLOYMENT,
    ),
    PolicyCase(
        "patch-steps",
        json_patch(add("/data/y", "'1'"), add("/data/z", "object.data.y + variables.x"))
        | {"variables": [{"name": "x", "expression": "object.data.x + object.data.?y.orValue('none')"}]},
    ),
    PolicyCase(
        "patch-condition", json_patch(add("/data/y", "'1'")) | {"matchConditions": conditions("false")}
    ),
    PolicyCase(
        "patch-condition-error",
        json_patch(add("/data/y", "'1'")) | {"matchConditions": conditions("object.data.y == ''")},
    ),
    PolicyCase(
        "patch-params",
        json_patch(add("/data/y", "params.data.x")) | {"paramKind": PARAM_KIND},
        CREATE,
        {"paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}},
        [Request("POST", CONFIG_MAPS, config_map("p", x="7"))],
    ),
    PolicyCase(
        "patch-params-absent",
        json_patch(add("/data/y", "params.data.x")) | {"paramKind": PARAM_KIND},
        binding={"paramRef": ABSENT},
    ),
    PolicyCase(
        "patch-again",
        json_patch(
            add("/data/n", "string(int(object.data.?n.orValue('0')) + 1)"), reinvocationPolicy="IfNeeded"
        ),
    ),
    PolicyCase(
        "patch-pod",
        ON_PODS | json_patch(add("/spec/containers/-", "{'name': 'side', 'image': 'car'}")),
        [Request("POST", PODS, pod())],
    ),
    PolicyCase(
        "patch-invalid",
        ON_PODS | json_patch(add("/spec/containers/-", "{'name': 'Side_Car', 'image': 'car'}")),
        [Request("POST", PODS, pod())],
    ),
    PolicyCase(
        "patch-expensive", json_patch(f"{loops(6)} ? [] : [JSONPatch{{op: 'remove', path: '/data'}}]")
    ),
]
APPLYING = [
    PolicyCase("apply-labels", apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"), UPDATES),
    PolicyCase("apply-data", apply("Object{data: {'y': object.data.x}}")),
    PolicyCase(
        "apply-replicas", ON_DEPLOYMENTS | apply("Object{spec: Object.spec{replicas: 1337}}"), DEPLOYMENT
    ),
    PolicyCase(
        "apply-containers",
        ON_DEPLOYMENTS
        | apply(
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ["
            "Object.spec.template.spec.containers{name: 's', image: 'x'},"
            "Object.spec.template.spec.containers{name: 'c', workingDir: '/x'}]}}}}"
        ),
        DEPLOYMENT,
    ),
    PolicyCase(
        "apply-atomic",
        ON_DEPLOYMENTS
        | apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}"),
        DEPLOYMENT,
    ),
    PolicyCase("apply-names", ON_DEPLOYMENTS | apply("Object{spec: Object.wrong{replicas: 2}}"), DEPLOYMENT),
    PolicyCase("apply-unknown", apply("Object{spec: Object.spec{a: 1}}")),
    PolicyCase("apply-type", apply("Object{data: 5}")),
    PolicyCase("apply-nothing", apply("Object{}")),
]
CASES = VALIDATING + MUTATING + APPLYING
