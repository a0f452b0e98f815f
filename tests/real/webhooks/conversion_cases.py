"""Conversion webhooks, good and bad, and requests that both servers are compared with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.kit.webhook_server import Answer, Json, Raw, WebhookServer
from tests.real.webhooks.cases import MERGE, Request

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
# What a case fills in: the versions of its own group.
V1, V2, V3 = ("/apis/{group}/%s/namespaces/default/hosts" % version for version in ("v1", "v2", "v3"))  # noqa: UP031
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(group: str, client_config: Json, *, storage: str = "v1", **conversion: Any) -> Json:
    """Hosts: v1 has `spec.hostPort`, v2 `spec.host` and `spec.port`, v3 is as v2 and has replicas elsewhere."""
    text, number = {"type": "string"}, {"type": "integer"}
    specs: dict[str, Json] = {
        "v1": {"hostPort": text, "count": number, "tags": {"type": "array", "items": text}},
        "v2": {"host": text, "port": {**text, "default": "80"}, "count": number, "mode": text},
        "v3": {"host": text, "port": text, "replicas": number},
    }
    counts = {"v1": ".spec.count", "v2": ".spec.count", "v3": ".spec.replicas"}
    state = {"type": "object", "properties": {"phase": text, "count": number}}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": spec}, "status": state},
                }
            },
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": counts[name], "statusReplicasPath": ".status.count"},
            },
            "additionalPrinterColumns": [
                {"name": each, "type": "string", "jsonPath": f".spec.{each}"} for each in spec
            ],
            "selectableFields": [
                {"jsonPath": f".spec.{each}"} for each in ("hostPort", "host") if each in spec
            ],
        }
        for name, spec in specs.items()
    ]
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"], **conversion}
    return {
        "metadata": {"name": f"hosts.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "hosts", "singular": "host", "kind": "Host", "listKind": "HostList"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def converted(obj: Json, target: str) -> Json:
    """What a webhook should do."""
    obj = deepcopy(obj)
    spec = obj.get("spec") or {}
    if "hostPort" in spec:
        spec["host"], _, spec["port"] = spec.pop("hostPort").partition(":")
    if "replicas" in spec:
        spec["count"] = spec.pop("replicas")
    version = target.rpartition("/")[2]
    if version == "v1" and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    if version == "v3" and "count" in spec:
        spec["replicas"] = spec.pop("count")
    obj["apiVersion"] = target
    return obj


def convert(request: Json) -> Json:
    found = [converted(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
    return {"convertedObjects": found, "result": {"status": "Success"}}


def changed(change: Callable[[Json], Any]) -> Answer:
    """As it should be, but with every object changed; what is returned takes its place, unless it is None."""

    def answer(request: Json) -> Json:
        given = convert(request)
        found = [(change(obj), obj) for obj in given["convertedObjects"]]
        return {**given, "convertedObjects": [obj if made is None else made for made, obj in found]}

    return answer


def meta(**fields: Any) -> Answer:
    """Changes metadata. An absent value removes the field."""

    def change(obj: Json) -> None:
        obj["metadata"] = {key: each for key, each in (obj["metadata"] | fields).items() if each is not None}

    return changed(change)


def response(**fields: Any) -> Answer:
    return lambda request: {**convert(request), **fields}


def whole(**fields: Any) -> Answer:
    """A whole review with these fields."""

    def answer(request: Json) -> Raw:
        review: Json = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
        review |= {"response": {"uid": request["uid"], **convert(request)}} | fields
        return Raw(json.dumps({key: each for key, each in review.items() if each is not None}).encode())

    return answer


def raw(body: bytes, status: int = 200, **headers: str) -> Answer:
    return lambda _: Raw(body, status, headers or {"Content-Type": "text/plain"})


def host(name: str, version: str = "v1", *, fields: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    spec = spec or ({"hostPort": "h:1"} if version == "v1" else {"host": "h", "port": "1"})
    metadata = {"name": name, **(fields or {})}
    return {"apiVersion": "{group}/" + version, "kind": "Host", "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class ConversionCase:
    """What `before` is answered is not compared. The path of the webhook is `/NAME`."""

    name: str
    requests: Sequence[Request]
    answer: Answer = convert
    before: Sequence[Request] = field(default=())
    config: Callable[[WebhookServer, Json], Json] = lambda served, config: config
    conversion: Mapping[str, Any] = field(default_factory=dict)
    hangs: bool = False

    @property
    def group(self) -> str:
        return f"{self.name}.example.com"


STORED = [Request("POST", V1, host("a")), Request("POST", V1, host("b", fields={"labels": {"x": "y"}}))]
USES = [
    Request("GET", f"{V2}/a"),
    Request("GET", V2),
    Request("GET", f"{V2}?labelSelector=x%3Dy"),
    Request("POST", V2, host("c", "v2")),
    Request("PUT", f"{V2}/a", host("a", "v2", fields={"resourceVersion": "1"})),
    Request("PATCH", f"{V2}/a", {"spec": {"host": "other"}}, MERGE),
    Request("PATCH", f"{V2}/b?fieldManager=me&force=true", host("b", "v2", host="x"), APPLY),
    Request("PATCH", f"{V2}/a/status", {"status": {"phase": "P"}}, MERGE),
    Request("GET", f"{V2}/a/scale"),
    Request("DELETE", f"{V2}/a"),
    Request("DELETE", V2),
    Request("GET", f"{V1}/a"),
    Request("GET", V1),
    Request("PATCH", f"{V1}/a", {"spec": {"count": 1}}, MERGE),
]


def bad(name: str, answer: Answer, *, requests: Sequence[Request] = USES, **more: Any) -> ConversionCase:
    return ConversionCase(name, requests, answer, before=STORED, **more)


def _untrusted(_: WebhookServer, config: Json) -> Json:
    return {key: value for key, value in config.items() if key != "caBundle"}


def _blank(_: WebhookServer, config: Json) -> Json:
    return {**config, "caBundle": "Cg=="}


def _refused(_: WebhookServer, config: Json) -> Json:
    return {**config, "url": "https://127.0.0.1:1/x"}


def _service(served: WebhookServer, config: Json) -> Json:
    service = {"namespace": "default", "name": "absent", "path": "/x"}
    return {"service": service, "caBundle": config["caBundle"]}


def _drop(obj: Json, *names: str) -> None:
    for name in names:
        del obj[name]


GOOD = [
    ConversionCase(
        "verbs",
        [
            Request("POST", V2, host("a", "v2", host="h", mode="lost")),
            Request("GET", f"{V1}/a"),
            Request("GET", f"{V2}/a"),
            Request("GET", f"{V3}/a"),
            Request("POST", V2, host("a", "v2")),
            Request("POST", V2, {**host("", "v2"), "metadata": {"generateName": "g-"}}),
            Request("POST", f"{V2}?dryRun=All", host("dry", "v2")),
            Request("PUT", f"{V2}/a", host("a", "v2", fields={"resourceVersion": "1"})),
            Request("PATCH", f"{V2}/a", {"spec": {"port": "2", "count": 3}}, MERGE),
            Request("PATCH", f"{V2}/a", [{"op": "remove", "path": "/spec/count"}], JSON_PATCH),
            Request("PATCH", f"{V2}/a", {"spec": {"port": "2"}}, MERGE),
            Request("PATCH", f"{V2}/a?dryRun=All", {"spec": {"port": "4"}}, MERGE),
            Request("PATCH", f"{V2}/a", {"spec": {"port": 4}}, MERGE),
            Request("PATCH", f"{V3}/a", {"spec": {"replicas": 4}}, MERGE),
            Request("GET", f"{V2}/a/scale"),
            Request("GET", f"{V3}/a/scale"),
            Request("PATCH", f"{V3}/a/scale", {"spec": {"replicas": 6}}, MERGE),
            Request("PATCH", f"{V2}/a/status", {"status": {"phase": "P"}, "spec": {"host": "no"}}, MERGE),
            Request("GET", f"{V1}/a/status"),
            Request("GET", V2),
            Request("GET", f"{V2}?fieldSelector=spec.host%3Dh"),
            Request("GET", f"{V1}?fieldSelector=spec.hostPort%3Dh%3A2"),
            Request("GET", f"{V2}?fieldSelector=spec.hostPort%3Dh"),
            Request("GET", f"{V2}?limit=1"),
            Request("PATCH", f"{V2}/a", {"metadata": {"finalizers": ["x.io/y"]}}, MERGE),
            Request("DELETE", f"{V2}/a"),
            Request("PATCH", f"{V2}/a", {"metadata": {"finalizers": None}}, MERGE),
            Request("DELETE", V2),
            Request("GET", V1),
        ],
    ),
    ConversionCase(
        "managers",
        [
            Request("PATCH", f"{V2}/a?fieldManager=two", host("a", "v2", host="h", port="1"), APPLY),
            Request("PATCH", f"{V1}/a?fieldManager=one", host("a", "v1", hostPort="i:1"), APPLY),
            Request("PATCH", f"{V1}/a?fieldManager=one", host("a", "v1", hostPort="h:1", count=1), APPLY),
            Request("PATCH", f"{V2}/a?fieldManager=three", host("a", "v2", port="2"), APPLY),
            Request("PATCH", f"{V2}/a?fieldManager=three&force=true", host("a", "v2", port="2"), APPLY),
            Request("GET", f"{V1}/a"),
            Request("PATCH", f"{V1}/a?fieldManager=two", host("a", "v1", count=1), APPLY),
            Request("PATCH", f"{V2}/a?fieldManager=one", host("a", "v2", host="k"), APPLY),
            Request("PATCH", f"{V3}/a?fieldManager=four", host("a", "v3", replicas=5), APPLY),
            Request("PATCH", f"{V3}/a?fieldManager=four&force=true", host("a", "v3", replicas=5), APPLY),
            Request("PATCH", f"{V2}/a?fieldManager=four", host("a", "v2", mode="m"), APPLY),
            Request("PATCH", f"{V2}/a?fieldManager=ed", {"spec": {"host": "z", "port": "9"}}, MERGE),
            Request("PATCH", f"{V1}/a?fieldManager=ed", {"spec": {"hostPort": "y:8"}}, MERGE),
            Request("PATCH", f"{V3}/a/scale?fieldManager=sc", {"spec": {"replicas": 6}}, MERGE),
            Request("PATCH", f"{V1}/a?fieldManager=one&force=true", host("a", "v1", hostPort="q:7"), APPLY),
            Request("GET", f"{V3}/a"),
        ],
    ),
    ConversionCase(
        "watches",
        [
            Request("GET", f"{V2}?watch=true&timeoutSeconds=1&resourceVersion=0"),
            Request("GET", f"{V1}?watch=true&timeoutSeconds=1&resourceVersion=0"),
            Request("GET", f"{V2}?watch=true&timeoutSeconds=1&resourceVersion=0&labelSelector=x%3Dy"),
            Request(
                "GET",
                f"{V3}?watch=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
                "&allowWatchBookmarks=true",
            ),
        ],
        before=STORED,
    ),
    bad("labels-changed", meta(labels={"new": "1"}, annotations={"a": "b"}), requests=USES[:9]),
    bad("metadata-ignored", meta(generation=9, finalizers=["x.io/y"], creationTimestamp=None)),
    bad("labels-removed", meta(labels=None), requests=USES[:4]),
    bad("unknown-fields-added", changed(lambda obj: obj["spec"].update(what=1)), requests=USES[:6]),
    bad("nulls-added", changed(lambda obj: obj["spec"].update(count=None)), requests=USES[:6]),
    bad("blank-authority", convert, config=_blank, requests=USES[:1]),
    bad(
        "old-review",
        convert,
        conversion={"conversionReviewVersions": ["v7", "v1beta1", "v1"]},
        requests=USES[:4],
    ),
]

BAD = [
    bad("failed", response(result={"status": "Failure", "message": "no way"})),
    bad("failed-silently", response(result={"status": "Failure"}), requests=USES[:4]),
    bad("no-result", response(result={}), requests=USES[:4]),
    bad("loses-objects", response(convertedObjects=[])),
    bad("adds-objects", lambda r: {**convert(r), "convertedObjects": convert(r)["convertedObjects"] * 2}),
    bad("no-objects", response(convertedObjects=None), requests=USES[:2]),
    bad("renames", meta(name="other")),
    bad("moves", meta(namespace="other"), requests=USES[:6]),
    bad("other-uid-of-object", meta(uid="other"), requests=USES[:6]),
    bad("drops-metadata", changed(lambda obj: _drop(obj, "metadata")), requests=USES[:4]),
    bad("metadata-is-text", changed(lambda obj: obj.update(metadata="x")), requests=USES[:2]),
    bad("labels-are-text", meta(labels="x"), requests=USES[:2]),
    bad("label-is-a-number", meta(labels={"a": 1}), requests=USES[:2]),
    bad("label-is-a-fraction", meta(labels={"a": 1.5}), requests=USES[:1]),
    bad("label-is-invalid", meta(labels={"a b": "c"}), requests=USES[:4]),
    bad("labels-are-invalid", meta(labels={"a b": "c d"}), requests=USES[:1]),
    bad("annotation-is-invalid", meta(annotations={"a b": "c"}), requests=USES[:2]),
    bad("not-converted", lambda r: {**convert(r), "convertedObjects": r["objects"]}),
    bad("other-kind", changed(lambda obj: obj.update(kind="Other")), requests=USES[:4]),
    bad("other-group", changed(lambda obj: obj.update(apiVersion="x.io/v2")), requests=USES[:2]),
    bad("no-kind", changed(lambda obj: _drop(obj, "kind")), requests=USES[:1]),
    bad("no-version", changed(lambda obj: _drop(obj, "apiVersion")), requests=USES[:2]),
    bad("objects-are-numbers", response(convertedObjects=[1]), requests=USES[:1]),
    bad("objects-are-null", response(convertedObjects=[None]), requests=USES[:1]),
    bad("invalid-in-its-version", changed(lambda obj: obj["spec"].update(count="x"))),
    bad("nonsense", raw(b"nonsense"), requests=USES[:4]),
    bad("nothing", raw(b""), requests=USES[:2]),
    bad("empty-object", raw(b"{}"), requests=USES[:2]),
    bad("list", raw(b"[]"), requests=USES[:1]),
    bad("another-review", raw(b'{"kind":"Pod","apiVersion":"v1"}'), requests=USES[:2]),
    bad(
        "a-status",
        raw(b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}'),
        requests=USES[:1],
    ),
    bad("untyped", whole(kind=None, apiVersion=None), requests=USES[:2]),
    bad("older-type", whole(apiVersion="apiextensions.k8s.io/v1beta1"), requests=USES[:2]),
    bad("no-response", whole(response=None), requests=USES[:2]),
    bad("other-uid", response(uid="other"), requests=USES[:4]),
    bad("no-uid", response(uid=""), requests=USES[:2]),
    bad("status-404", raw(b"no", 404), requests=USES[:2]),
    bad("status-500", raw(b"no", 500), requests=USES[:4]),
    bad("status-503", raw(b"no", 503), requests=USES[:1]),
    bad("redirect", raw(b"", 302, Location="/redirected"), requests=USES[:1]),
    bad("redirect-307", raw(b"", 307, Location="/redirected"), requests=USES[:1]),
    ConversionCase("hangs", USES[:1], before=STORED, hangs=True),
    bad("untrusted", convert, config=_untrusted, requests=USES[:10]),
    bad("refused", convert, config=_refused, requests=USES[:4]),
    bad("service-absent", convert, config=_service, requests=USES[:4]),
]
