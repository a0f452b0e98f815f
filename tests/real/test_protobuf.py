"""What kube-apiserver encodes as protobuf, we read as the JSON that it gives for the same object."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import pytest

from podlife.api import protobuf, schema
from tests.fuzz.objects import SEEDS
from tests.kit.real_parts import Server

META = {"name": "encoded", "labels": {"a": "b", "empty": ""}}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "c",
                "image": "c:1",
                "env": [
                    {"name": "V", "value": "x"},
                    {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
                "ports": [{"containerPort": 80, "name": "http"}],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/x"}, "periodSeconds": 7},
                "readinessProbe": {"exec": {"command": ["true"]}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
                "securityContext": {
                    "runAsUser": 0,
                    "privileged": False,
                    "capabilities": {"add": ["NET_ADMIN"]},
                },
                "volumeMounts": [{"name": "e", "mountPath": "/e"}],
            }
        ],
        "volumes": [
            {"name": "e", "emptyDir": {"sizeLimit": "1Mi"}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
        ],
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                    ]
                }
            }
        },
        "terminationGracePeriodSeconds": 7,
    },
}
SELECTOR = {"matchLabels": {"a": "b"}}
LEASE = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2030-01-02T03:04:05.678901Z"}
EVENT = {
    "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
    "reason": "Because",
    "message": "ünïcode",
    "firstTimestamp": "2030-01-02T03:04:05Z",
    "count": 3,
}

OBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Pod": ("/api/v1/namespaces/default/pods", {"spec": TEMPLATE["spec"]}),
    "Deployment": (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"rollingUpdate": {"maxSurge": "30%"}},
            }
        },
    ),
    "StatefulSet": (
        "/apis/apps/v1/namespaces/default/statefulsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}},
    ),
    "ControllerRevision": (
        "/apis/apps/v1/namespaces/default/controllerrevisions",
        {"revision": 4, "data": {"any": {"thing": [1, 2.5, None]}}},
    ),
    "Job": (
        "/apis/batch/v1/namespaces/default/jobs",
        {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}, "backoffLimit": 0}},
    ),
    "Secret": ("/api/v1/namespaces/default/secrets", {"data": {"k": "AAEC/w=="}}),
    "ConfigMap": ("/api/v1/namespaces/default/configmaps", {"data": {"k": "v"}, "binaryData": {"b": "/w=="}}),
    "PodDisruptionBudget": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ),
    "Lease": ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": LEASE}),
    "Event": ("/api/v1/namespaces/default/events", EVENT),
    **{
        seed.resource.kind: (seed.collection, {"spec": seed.object("encoded")["spec"]})
        for seed in SEEDS
        if seed.resource.group == "resource.k8s.io"
    },
    "Service": (
        "/api/v1/namespaces/default/services",
        {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}},
    ),
    "Node": ("/api/v1/nodes", {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}),
}

TEXT = {"type": "string", "maxLength": 9, "pattern": "^[a-z]+$", "enum": ["a", "b"], "default": "a"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "description": "ünïcode",
            "required": ["text"],
            "properties": {
                "text": {**TEXT, "x-kubernetes-validations": [{"rule": "self != 'c'", "message": "not c"}]},
                "number": {"type": "number", "minimum": -0.5, "maximum": 5, "multipleOf": 0.5},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "either": {"x-kubernetes-int-or-string": True},
                "map": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "granular"},
                "open": {"type": "object", "additionalProperties": True},
                "list": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"k": TEXT}, "default": {"k": "b"}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
                "junctors": {
                    "type": "string",
                    "nullable": True,
                    "anyOf": [{"minLength": 0}, {"pattern": "x"}],
                    "allOf": [{"not": {"enum": [None, 1.5, {"a": []}]}}],
                    "externalDocs": {"url": "https://example.com"},
                    "example": {"a": [1, None]},
                },
            },
        }
    },
}


def definition(plural: str, props: dict[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": props}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.pb.example.com"},
        "spec": {
            "group": "pb.example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [version],
        },
    }


def ask(server: Server, method: str, path: str, accept: str, body: object = None) -> bytes:
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {server.tokens['admin']}",
            "Accept": accept,
            "Content-Type": protobuf.MEDIA_TYPE if isinstance(body, bytes) else "application/json",
        },
    )
    context = ssl.create_default_context(cafile=str(server.ca_file))
    with urllib.request.urlopen(request, context=context, timeout=120) as answer:
        return bytes(answer.read())


@pytest.mark.parametrize("kind", OBJECTS)
def test_protobuf_of_the_real_server_reads_as_its_json(kube: Server, kind: str) -> None:
    path, fields = OBJECTS[kind]
    group = path.removeprefix("/api/").removeprefix("/apis/").split("/")
    version = "v1" if path.startswith("/api/") else "/".join(group[:2])
    ask(
        kube,
        "POST",
        path,
        "application/json",
        {"kind": kind, "apiVersion": version, "metadata": META, **fields},
    )
    plain = json.loads(ask(kube, "GET", f"{path}/encoded", "application/json"))
    read = protobuf.decode(ask(kube, "GET", f"{path}/encoded", protobuf.MEDIA_TYPE))
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": plain["metadata"]["uid"]}}
    ask(kube, "DELETE", f"{path}/encoded", "application/json", options)
    for obj in (read, plain):
        obj["metadata"].pop("managedFields", None)
        assert schema.check(version, kind, obj) == []
    assert read == plain


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize("is_bad", [False, True], ids=["valid", "invalid"])
def test_definition_in_protobuf_is_answered_as_in_json(
    kube: Server, podlife_server: Server, is_bad: bool
) -> None:
    """The real server encodes the definition; then both servers get it in both forms."""
    plain = definition("things", SCHEMA)
    if is_bad:
        plain = json.loads(json.dumps(plain).replace("not c", " ").replace("self != 'c'", "nope"))
    answers = []
    encoded = _encoded(kube, plain)
    for server in (kube, podlife_server):
        for body in (plain, encoded):
            try:
                answer = json.loads(ask(server, "POST", f"{CRDS}?dryRun=All", "application/json", body))
                answers.append((answer["spec"], answer["metadata"]["name"]))
            except urllib.error.HTTPError as refusal:
                answers.append((refusal.code, json.loads(refusal.read())["message"]))
    assert answers == answers[:1] * 4
    assert (answers[0][0] == 422) is is_bad


def _encoded(kube: Server, obj: dict[str, Any]) -> bytes:
    """The object in protobuf. Only a valid one is answered in it: the two texts that make it invalid are put in after
    that, in as many bytes."""
    data = json.dumps(obj)
    valid = json.loads(data.replace("nope", "true").replace('"message": " "', '"message": "x"'))
    found = ask(kube, "POST", f"{CRDS}?dryRun=All", protobuf.MEDIA_TYPE, valid)
    if obj == valid:
        return found
    assert found.count(b"\x0a\x04true\x12\x01x") == 1
    return found.replace(b"\x0a\x04true\x12\x01x", b"\x0a\x04nope\x12\x01 ")
