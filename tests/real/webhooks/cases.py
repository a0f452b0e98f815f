"""Webhooks and requests that both servers are compared with: what they answer, and what they ask the webhook."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kit.webhook_server import Answer, Json, Raw, WebhookServer, allow, deny, patch, patched, webhook
from tests.real.differential.steps import Step
from tests.real.differential.target import Target

MERGE = "application/merge-patch+json"
LABEL = {"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}
CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"


@dataclass(frozen=True)
class Case:
    """`hooks` makes the webhooks; `before` is sent while there are none. The URL of the webhook is `/NAME/…`."""

    name: str
    hooks: Callable[[WebhookServer, str], Sequence[Json]]
    requests: Sequence[Request]
    kind: str = "Mutating"
    before: Sequence[Request] = field(default=())

    @property
    def namespace(self) -> str:
        return f"hooks-{self.name}"


def rule(*resources: str, group: str = "", operations: Sequence[str] = ("*",), **others: Any) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": list(resources),
        **others,
    }


def send(target: Target, request: Request, namespace: str = "") -> Any:
    headers = {"Content-Type": request.content_type} if request.body is not None else {}
    path = request.path.replace("{ns}", namespace)
    return target.send(Step("", "", request.method, path, 0, request.body, headers=headers), {})


def one(answer: Answer, **others: Any) -> Callable[[WebhookServer, str], Sequence[Json]]:
    """A single webhook that answers so."""

    def hooks(served: WebhookServer, name: str) -> Sequence[Json]:
        return [webhook("hook", served.at(f"/{name}/hook", answer), **others)]

    return hooks


def when(*expressions: str, **others: Any) -> Callable[[WebhookServer, str], Sequence[Json]]:
    """A webhook that rejects what meets these conditions."""
    conditions = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
    return one(deny("met"), matchConditions=conditions, **others)


def config_map(name: str = "a", **data: str) -> Json:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def pod(name: str = "p") -> Json:
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def deployment() -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": spec}


CREATE = [Request("POST", CONFIG_MAPS, config_map(x="1"))]
RAW_PATCH = base64.b64encode(b"nonsense").decode()


def raw(body: bytes, status: int = 200, content_type: str = "application/json") -> Answer:
    return lambda _: Raw(body, status, {"Content-Type": content_type} if content_type else {})


def review(**response: Any) -> Answer:
    """An answer whose UID and type are as given here."""

    def answer(request: Json) -> Raw:
        whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", **response}
        return Raw(json.dumps(whole).replace("${uid}", request["uid"]).encode())

    return answer


def bad(name: str, answer: Answer, kind: str = "Mutating", **others: Any) -> Case:
    return Case(name, one(answer, **others), CREATE, kind)


def append(text: str) -> Answer:
    def answer(request: Json) -> Json:
        seen = request["object"]["data"].get("seen", "")
        if text in seen:
            return {"allowed": True}
        return patched({"op": "add", "path": "/data/seen", "value": seen + text})

    return answer


def _chain(served: WebhookServer, name: str) -> Sequence[Json]:
    return [
        webhook("a", served.at(f"/{name}/a", append("a")), reinvocationPolicy="IfNeeded"),
        webhook("b", served.at(f"/{name}/b", append("b"))),
        webhook("c", served.at(f"/{name}/c", append("c")), reinvocationPolicy="IfNeeded"),
        webhook("d", served.at(f"/{name}/d", append("d"))),
    ]


def _untrusted(served: WebhookServer, name: str) -> Sequence[Json]:
    config = served.at(f"/{name}/hook")
    del config["caBundle"]
    return [webhook("hook", config)]


def _refused(served: WebhookServer, name: str) -> Sequence[Json]:
    return [webhook("hook", {**served.at(f"/{name}/hook"), "url": "https://127.0.0.1:1/x"})]


def _service(served: WebhookServer, name: str) -> Sequence[Json]:
    service = {"namespace": f"hooks-{name}", "name": "absent", "path": "/x"}
    return [webhook("hook", {"service": service, "caBundle": served.ca_bundle})]


def _hangs(served: WebhookServer, name: str) -> Sequence[Json]:
    return [webhook("hook", served.at(f"/{name}/hook", served.hang), timeoutSeconds=1)]


def event(namespace: str) -> Json:
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    return {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "message": "m"}


EVICTION = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
BINDING = {
    "kind": "Binding",
    "apiVersion": "v1",
    "metadata": {"name": "p"},
    "target": {"kind": "Node", "name": "n"},
}

CASES: list[Case] = [
    Case(
        "verbs",
        one(patch(LABEL)),
        [
            Request("POST", CONFIG_MAPS, config_map(x="1")),
            Request("PUT", CONFIG_MAPS + "/a", config_map(x="2")),
            Request("PATCH", CONFIG_MAPS + "/a", {"data": {"x": "3"}}, MERGE),
            Request(
                "POST", CONFIG_MAPS + "?dryRun=All&fieldManager=me&fieldValidation=Strict", config_map("b")
            ),
            Request("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}}),
        ],
    ),
    Case(
        "deletes",
        one(allow),
        [
            Request("DELETE", CONFIG_MAPS + "/a"),
            Request("DELETE", CONFIG_MAPS + "/b?propagationPolicy=Background&gracePeriodSeconds=5"),
            Request("DELETE", CONFIG_MAPS + "/c", {"dryRun": ["All"], "preconditions": {"uid": "other"}}),
            Request("DELETE", CONFIG_MAPS),
        ],
        "Validating",
        before=[Request("POST", CONFIG_MAPS, config_map(name)) for name in "abc"],
    ),
    Case(
        "validating-verbs",
        one(allow),
        [
            Request("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}}),
            Request("POST", CONFIG_MAPS, config_map(x="1")),
            Request("PUT", CONFIG_MAPS + "/a", config_map(x="2")),
            Request("POST", CONFIG_MAPS, config_map(x="2")),
            Request("PUT", CONFIG_MAPS + "/absent", config_map("absent")),
        ],
        "Validating",
    ),
    Case("patch-of-a-delete", one(patch(LABEL)), [Request("DELETE", CONFIG_MAPS + "/a")], before=CREATE),
    Case(
        "pods",
        one(allow, rules=[rule("pods", "pods/*")]),
        [
            Request("POST", PODS, pod()),
            Request("PATCH", PODS + "/p/status", {"status": {"reason": "R"}}, MERGE),
            Request("POST", PODS + "/p/binding", BINDING),
            Request("POST", PODS + "/p/eviction", EVICTION),
            Request("DELETE", PODS + "/p?gracePeriodSeconds=0"),
        ],
        "Validating",
    ),
    Case(
        "scale",
        one(
            patch({"op": "replace", "path": "/spec/replicas", "value": 5}),
            rules=[rule("deployments/scale", group="apps")],
        ),
        [
            Request("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 3}}, MERGE),
            Request("GET", DEPLOYMENTS + "/d/scale"),
        ],
        before=[Request("POST", DEPLOYMENTS, deployment())],
    ),
    Case("order", _chain, [Request("POST", CONFIG_MAPS, config_map(x="1"))]),
    Case("v1beta1", one(patch(LABEL), admissionReviewVersions=["v1beta1", "v1"]), CREATE),
    Case("unknown-version-first", one(patch(LABEL), admissionReviewVersions=["v7", "v1"]), CREATE),
    bad("denied", deny("because")),
    bad("denied-validating", deny("because", code=418, reason="Teapot", details={"name": "x"}), "Validating"),
    bad("denied-by-reason", deny("", reason="Conflict")),
    bad("denied-silently", lambda _: {"allowed": False}),
    bad("denied-with-success", deny("m", status="Success", code=200)),
    bad("warned", lambda _: {"allowed": True, "warnings": ["beware", 'of "quotes"']}, "Validating"),
    bad("warned-and-denied", lambda _: {"allowed": False, "warnings": ["beware"]}, "Validating"),
    bad("nonsense", raw(b"nonsense")),
    bad("nothing", raw(b"")),
    bad("empty-object", raw(b"{}")),
    bad("list", raw(b"[]")),
    bad("another-kind", raw(b'{"kind":"Pod","apiVersion":"v1"}')),
    bad("no-kind", raw(b'{"apiVersion":"admission.k8s.io/v1"}')),
    bad("no-response", review()),
    bad("other-uid", review(response={"uid": "x", "allowed": True})),
    bad("no-uid", review(response={"allowed": True})),
    bad("untyped", review(kind="", apiVersion="", response={"uid": "${uid}", "allowed": True})),
    bad(
        "older-type",
        review(apiVersion="admission.k8s.io/v1beta1", response={"uid": "${uid}", "allowed": True}),
    ),
    bad("patch-without-type", review(response={"uid": "${uid}", "allowed": True, "patch": "W10="})),
    bad("type-without-patch", review(response={"uid": "${uid}", "allowed": True, "patchType": "JSONPatch"})),
    bad(
        "empty-patch-type",
        review(response={"uid": "${uid}", "allowed": True, "patchType": "", "patch": "W10="}),
    ),
    bad(
        "other-patch-type",
        review(
            response={"uid": "${uid}", "allowed": True, "patchType": "Merge", "patch": "W3sib3AiOiJ4In1d"}
        ),
    ),
    bad(
        "undecodable-patch",
        review(response={"uid": "${uid}", "allowed": True, "patchType": "JSONPatch", "patch": RAW_PATCH}),
    ),
    bad(
        "patch-not-base64",
        review(response={"uid": "${uid}", "allowed": True, "patchType": "JSONPatch", "patch": "%"}),
    ),
    bad("validating-with-patch", patch(LABEL), "Validating"),
    bad("allowed-is-text", review(response={"uid": "${uid}", "allowed": "yes"})),
    bad("status-400", raw(b"no", 400, "text/plain")),
    bad("status-401", raw(b"no", 401, "text/plain")),
    bad("status-403", raw(b"no", 403, "text/plain")),
    bad("status-404", raw(b"no", 404, "text/plain")),
    bad("status-409", raw(b"no", 409, "text/plain")),
    bad("status-429", raw(b"no", 418, "text/plain")),
    bad("status-500", raw(b'no "x"', 500, "text/plain")),
    bad("status-500-json", raw(b"{}", 500)),
    bad("status-503", raw(b"no", 503, "text/plain")),
    bad("status-204", raw(b"", 204, "")),
    bad("patch-removes-nothing", patch({"op": "remove", "path": "/absent"})),
    bad("patch-tests", patch({"op": "test", "path": "/data/x", "value": "2"})),
    bad("patch-unknown-field", patch({"op": "add", "path": "/unknown", "value": 1})),
    bad("patch-unknown-operation", patch({"op": "what", "path": "/data"})),
    bad("patch-wrong-type", patch({"op": "add", "path": "/data", "value": ["x"]})),
    bad("patch-invalid-label", patch({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}})),
    bad("patch-renames", patch({"op": "replace", "path": "/metadata/name", "value": "b"})),
    bad("patch-moves", patch({"op": "replace", "path": "/metadata/namespace", "value": "other"})),
    bad("patch-root", patch({"op": "replace", "path": "", "value": []})),
    bad("patch-sets-uid", patch({"op": "add", "path": "/metadata/uid", "value": "x"})),
    Case(
        "patch-renames-in-update",
        one(patch({"op": "replace", "path": "/metadata/name", "value": "b"})),
        [Request("PUT", CONFIG_MAPS + "/a", config_map(x="2"))],
        before=CREATE,
    ),
    Case("untrusted", _untrusted, CREATE),
    Case("service-absent", _service, CREATE),
    Case("hangs", _hangs, CREATE),
    bad("redirect", lambda _: Raw(b"", 302, {"Location": "/redirected"})),
    bad("redirect-307", lambda _: Raw(b"", 307, {"Location": "/redirected"})),
    Case(
        "exec",
        one(deny("no exec"), rules=[rule("pods/exec")]),
        [Request("POST", PODS + "/p/exec?command=ls&command=-l&stdout=true&container=c&stdin=1")],
        "Validating",
        before=[Request("POST", PODS, pod())],
    ),
    Case(
        "namespace",
        one(deny("kept", code=403), rules=[rule("namespaces", operations=["UPDATE", "DELETE"])]),
        [
            Request("PATCH", "/api/v1/namespaces/{ns}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
            Request("DELETE", "/api/v1/namespaces/{ns}"),
        ],
        "Validating",
    ),
    Case(
        "cluster-scope",
        one(deny("seen"), rules=[rule("*", scope="Cluster")]),
        [Request("POST", CONFIG_MAPS, config_map())],
    ),
    Case(
        "equivalent",
        one(deny("seen"), rules=[rule("events", group="events.k8s.io")]),
        [Request("POST", "/api/v1/namespaces/{ns}/events", event("hooks-equivalent"))],
    ),
    bad("annotated", lambda _: {"allowed": True, "auditAnnotations": {"k": "v"}}, "Validating"),
    bad("status-of-an-object", raw(b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}')),
    bad("patch-adds-finalizer", patch({"op": "add", "path": "/metadata/finalizers", "value": ["x"]})),
    bad("patch-replaces-data", patch({"op": "replace", "path": "/data/x", "value": 1})),
    bad("patch-deep", patch({"op": "add", "path": "/metadata/labels/a/b", "value": "c"})),
    bad("patch-changes-kind", patch({"op": "replace", "path": "/kind", "value": "Pod"})),
    bad("patch-of-nothing", patch()),
    Case(
        "pod-defaults",
        one(
            patch({"op": "add", "path": "/spec/containers/-", "value": {"name": "s", "image": "x"}}),
            rules=[rule("pods")],
        ),
        [Request("POST", PODS, pod())],
    ),
    Case("refused", _refused, CREATE),
    Case("condition-true", when("object.data.x == '1'", "request.operation == 'CREATE'"), CREATE),
    Case("condition-false", when("true", "object.data.x == '2'"), CREATE),
    Case("condition-error", when("true", "object.data.y == '2'"), CREATE),
    Case("condition-errors", when("object.data.y == '2'", "oldObject.data.y == '2'"), CREATE),
    Case("condition-error-false", when("object.data.y == '2'", "false"), CREATE, "Validating"),
    Case("condition-error-ignored", when("object.data.y == '2'", failurePolicy="Ignore"), CREATE),
    Case("condition-user", when("authorizer.requestResource.check('create').allowed()"), CREATE),
    Case("condition-namespace", when("namespaceObject == null"), CREATE, "Validating"),
    bad("ignored", raw(b"nonsense"), failurePolicy="Ignore"),
    bad("ignored-denial", deny("still"), failurePolicy="Ignore"),
    Case(
        "selected-by-label",
        one(deny("seen"), objectSelector={"matchLabels": {"a": "b"}}),
        [
            Request("POST", CONFIG_MAPS, config_map()),
            Request("PATCH", CONFIG_MAPS + "/a", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ],
    ),
    Case(
        "exact",
        one(deny("seen"), matchPolicy="Exact", rules=[rule("events", group="events.k8s.io")]),
        [Request("POST", "/api/v1/namespaces/{ns}/events", event("hooks-exact"))],
    ),
]
