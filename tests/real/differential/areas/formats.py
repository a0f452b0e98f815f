"""Tables, partial metadata, strict fields and warnings."""

from __future__ import annotations

import json

from tests.real.differential.areas.objects import (
    APPS,
    BATCH,
    CORE,
    NODES,
    PODS,
    POLICY,
    config_map,
    of,
    phase,
    pod,
    template,
    workload,
)
from tests.real.differential.steps import Area

TABLES = Area("tables")
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"}
METADATA_LIST = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
}
MAPS = CORE + "/configmaps"

TABLES.post("pod", PODS, pod("p", nodeName="node-x", metadata={"labels": {"app": "web"}}))
TABLES.post("pod-with-inits", PODS, pod("q", initContainers=[{"name": "i", "image": "i"}]))
TABLES.get("pod-row", PODS + "/p", headers=TABLE)
TABLES.get("pod-rows", PODS, headers=TABLE)
TABLES.patch(
    "pod-runs",
    "merge",
    PODS + "/p/status",
    phase(
        "Running",
        podIP="172.16.0.5",
        podIPs=[{"ip": "172.16.0.5"}],
        conditions=[{"type": "Ready", "status": "True"}],
        containerStatuses=[
            {
                "name": "main",
                "ready": True,
                "restartCount": 2,
                "image": "i",
                "imageID": "",
                "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}},
            }
        ],
    ),
)
TABLES.get("pod-running-row", PODS + "/p", headers=TABLE)
TABLES.patch(
    "pod-crashes",
    "merge",
    PODS + "/p/status",
    {
        "status": {
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": False,
                    "restartCount": 3,
                    "image": "i",
                    "imageID": "",
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                }
            ]
        }
    },
)
TABLES.get("pod-crashing-row", PODS + "/p", headers=TABLE)
TABLES.delete("pod-marked", PODS + "/p")
TABLES.get("pod-terminating-row", PODS + "/p", headers=TABLE)
TABLES.get("whole-objects-in-rows", PODS + "?includeObject=Object", headers=TABLE)
TABLES.get("no-objects-in-rows", PODS + "?includeObject=None", headers=TABLE)
TABLES.get("include-unknown", PODS + "?includeObject=Some", 400, headers=TABLE)
TABLES.get("page-of-rows", PODS + "?limit=1", headers=TABLE)
TABLES.get("missing-row", PODS + "/missing", 404, headers=TABLE)
TABLES.get("table-alone", PODS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
TABLES.get(
    "old-table-version",
    PODS,
    headers={"Accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"},
    code=200,
)
TABLES.get("unknown-form", PODS, 406, headers={"Accept": "application/json;as=Picture;v=v1;g=meta.k8s.io"})
TABLES.get(
    "unknown-form-falls-back",
    PODS,
    headers={"Accept": "application/json;as=Picture;v=v1;g=meta.k8s.io,application/json"},
)
TABLES.get("metadata-of-one", PODS + "/p", headers=METADATA)
TABLES.get("metadata-of-all", PODS, headers=METADATA_LIST)
TABLES.get(
    "metadata-asked-of-a-list",
    PODS,
    406,
    headers={"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
)
TABLES.post("metadata-of-a-new-one", MAPS, config_map("meta"), headers=METADATA)
TABLES.post("row-of-a-new-one", MAPS, config_map("row"), headers=TABLE)
TABLES.get(
    "protobuf-or-json",
    MAPS + "/row",
    headers={"Accept": "application/vnd.kubernetes.protobuf;q=0.1,application/json"},
)
TABLES.get("yaml-is-offered", MAPS + "/row", headers={"Accept": "application/yaml"})
TABLES.get("anything", MAPS + "/row", headers={"Accept": "*/*"})
TABLES.get("no-accept", MAPS + "/row", headers={"Accept": ""})
TABLES.get("html-only", MAPS + "/row", 406, headers={"Accept": "text/html"})

_rows = {
    "deployments": (APPS + "/deployments", workload("Deployment", "w")),
    "replicasets": (APPS + "/replicasets", workload("ReplicaSet", "w")),
    "statefulsets": (APPS + "/statefulsets", workload("StatefulSet", "w")),
    "daemonsets": (APPS + "/daemonsets", workload("DaemonSet", "w")),
    "controllerrevisions": (
        APPS + "/controllerrevisions",
        of("apps/v1", "ControllerRevision", "w", revision=3, data={}),
    ),
    "jobs": (
        BATCH + "/jobs",
        of("batch/v1", "Job", "w", spec={"template": template({}, restartPolicy="Never")}),
    ),
    "cronjobs": (
        BATCH + "/cronjobs",
        of(
            "batch/v1",
            "CronJob",
            "w",
            spec={
                "schedule": "0 0 * * *",
                "jobTemplate": {"spec": {"template": template({}, restartPolicy="Never")}},
            },
        ),
    ),
    "services": (
        CORE + "/services",
        of("v1", "Service", "w", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}),
    ),
    "endpoints": (
        CORE + "/endpoints",
        of("v1", "Endpoints", "w", subsets=[{"addresses": [{"ip": "172.16.1.1"}], "ports": [{"port": 80}]}]),
    ),
    "secrets": (CORE + "/secrets", of("v1", "Secret", "w", data={"a": "AA=="})),
    "serviceaccounts": (CORE + "/serviceaccounts", of("v1", "ServiceAccount", "w")),
    "claims": (
        CORE + "/persistentvolumeclaims",
        of(
            "v1",
            "PersistentVolumeClaim",
            "w",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
    ),
    "events": (
        CORE + "/events",
        of(
            "v1",
            "Event",
            "w",
            involvedObject={"kind": "Pod", "name": "p", "namespace": "${ns}"},
            reason="R",
            message="m",
            type="Normal",
        ),
    ),
    "leases": (
        "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases",
        of("coordination.k8s.io/v1", "Lease", "w", spec={"holderIdentity": "me"}),
    ),
    "budgets": (
        POLICY + "/poddisruptionbudgets",
        of(
            "policy/v1",
            "PodDisruptionBudget",
            "w",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        ),
    ),
    "controllers": (
        CORE + "/replicationcontrollers",
        of("v1", "ReplicationController", "w", spec={"template": template()}),
    ),
}
for name, (path, body) in _rows.items():
    TABLES.post(f"{name}-create", path, body)
    TABLES.get(f"{name}-row", path + "/w", headers=TABLE)
TABLES.post(
    "node-create",
    NODES,
    of("v1", "Node", "table-node", metadata={"labels": {"node-role.kubernetes.io/worker": ""}}),
)
TABLES.get("node-row", NODES + "/table-node", headers=TABLE)
TABLES.get("namespace-row", "/api/v1/namespaces/${ns}", headers=TABLE)
TABLES.get("map-row", MAPS + "/row", headers=TABLE)
TABLES.delete("node-delete", NODES + "/table-node")

FIELDS = Area("field-validation")
_odd = {**pod("x"), "extra": 1}
_deep = pod("x", containers=[{"name": "a", "image": "i", "comand": ["x"]}], nodeNmae="n")
_twice = json.dumps(pod("twice"))[:-1] + ', "kind": "Pod"}'
for mode in ("Strict", "Warn", "Ignore"):
    query = f"?fieldValidation={mode}&dryRun=All"
    code = 400 if mode == "Strict" else 201
    FIELDS.post(f"top-level-{mode}", PODS + query, _odd, code)
    FIELDS.post(f"deep-{mode}", PODS + query, _deep, code)
    FIELDS.post(f"twice-{mode}", PODS + query, _twice, code)
    FIELDS.post(f"clean-{mode}", PODS + query, pod("x"))
FIELDS.post("default-is-warn", PODS + "?dryRun=All", _deep)
FIELDS.post("unknown-mode", PODS + "?fieldValidation=Loud", pod("x"), 422)
FIELDS.post("create", MAPS, config_map("m"))
FIELDS.put("put-strict", MAPS + "/m?fieldValidation=Strict", {**config_map("m"), "dada": {}}, 400)
FIELDS.put("put-warn", MAPS + "/m", {**config_map("m"), "dada": {}})
FIELDS.patch(
    "merge-strict", "merge", MAPS + "/m?fieldValidation=Strict", {"dada": {}, "metadata": {"lables": {}}}, 422
)
FIELDS.patch("merge-ignore", "merge", MAPS + "/m?fieldValidation=Ignore", {"dada": {}})
FIELDS.patch("strategic-strict", "strategic", MAPS + "/m?fieldValidation=Strict", {"dada": {}}, 422)
FIELDS.patch(
    "json-strict",
    "json",
    MAPS + "/m?fieldValidation=Strict",
    [{"op": "add", "path": "/dada", "value": 1}],
    422,
)
FIELDS.patch(
    "merge-twice-strict", "merge", MAPS + "/m?fieldValidation=Strict", '{"data":{"a":"1","a":"2"}}', 422
)
FIELDS.post(
    "other-case-is-unknown", PODS + "?fieldValidation=Strict&dryRun=All", {**pod("x"), "Spec": {}}, 400
)
FIELDS.post(
    "many-at-once",
    PODS + "?fieldValidation=Strict&dryRun=All",
    {**pod("x", a=1, b=2), "c": 3, "metadata": {"name": "x", "d": 4}},
    400,
)
FIELDS.post(
    "free-form-data-is-free",
    APPS + "/controllerrevisions?fieldValidation=Strict&dryRun=All",
    of("apps/v1", "ControllerRevision", "r", revision=1, data={"anything": {"goes": [1, 2]}}),
)
_MIXED = (
    '{"kind":"ConfigMap","apiVersion":"v1","first":1,"metadata":{"name":"x","name":"y","nowhere":1},'
    '"data":{"a":"1","a":"2"},"last":{"a":1,"a":2},"first":2}'
)
FIELDS.post("unknown-and-twice-strict", MAPS + "?fieldValidation=Strict&dryRun=All", _MIXED, 400)
FIELDS.post("unknown-and-twice-warn", MAPS + "?fieldValidation=Warn&dryRun=All", _MIXED)
_YAML_TWICE = """kind: ConfigMap
apiVersion: v1
metadata: {name: x, nowhere: 1}
data:
  a: "1"
  a: "2"
"""
_YAML = {"Content-Type": "application/yaml"}
FIELDS.post("yaml-twice-strict", MAPS + "?fieldValidation=Strict&dryRun=All", _YAML_TWICE, 400, headers=_YAML)
FIELDS.post("yaml-twice-warn", MAPS + "?fieldValidation=Warn&dryRun=All", _YAML_TWICE, headers=_YAML)
