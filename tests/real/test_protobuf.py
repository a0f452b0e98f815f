"""What kube-apiserver encodes as protobuf, we read as the JSON that it gives for the same object."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any

import pytest

from podlife.api import protobuf, schema
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
    "Service": (
        "/api/v1/namespaces/default/services",
        {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}},
    ),
    "Node": ("/api/v1/nodes", {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}),
}


def ask(server: Server, method: str, path: str, accept: str, body: object = None) -> bytes:
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {server.tokens['admin']}",
            "Accept": accept,
            "Content-Type": "application/json",
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
