"""Server-side apply: creation, ownership, conflicts, pruning, refusals."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import APPS, CORE, PODS, config_map, container, of, pod, workload
from tests.real.differential.steps import Area

APPLY = Area("apply")
MAPS = CORE + "/configmaps"
DEPLOYMENT = APPS + "/deployments/d"
_LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _apply(
    name: str,
    body: Any,
    code: int = 200,
    *,
    path: str = MAPS + "/a",
    who: str = "me",
    query: str = "",
    **more: Any,
) -> None:
    manager = f"?fieldManager={who}" if who else "?x=y"
    APPLY.patch(name, "apply", f"{path}{manager}{query}", body, code, **more)


def _labels(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


# One manager.
_apply("creates", config_map("a", {"x": "1", "y": "2"}), 201)
_apply("again", config_map("a", {"x": "1", "y": "2"}))
APPLY.get("after-again", MAPS + "/a")
_apply("changes", config_map("a", {"x": "1", "y": "3"}))
_apply("prunes", config_map("a", {"x": "1"}))
_apply("adds-labels", config_map("a", {"x": "1"}, **_labels(p="q")))
_apply("empty-map", config_map("a", {}))
_apply("nothing", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
_apply("null-data", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": None})
_apply("without-a-name", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "5"}})
_apply("with-namespace", config_map("a", {"x": "6"}, metadata={"namespace": "${ns}"}))
_apply("dry-run", config_map("a", {"x": "7"}), query="&dryRun=All")
APPLY.get("after-dry-run", MAPS + "/a")
_apply("dry-run-creates", config_map("never", {"x": "7"}), 201, path=MAPS + "/never", query="&dryRun=All")
APPLY.get("never-created", MAPS + "/never", 404)

# Two managers.
_apply("other-shares", config_map("a", {"x": "6"}), who="you")
_apply("other-conflicts", config_map("a", {"x": "8"}), 409, who="you")
_apply("two-conflicts", config_map("a", {"x": "8", "z": "9"}, **_labels(p="q")), 409, who="third")
_apply("other-forces", config_map("a", {"x": "8"}), who="you", query="&force=true")
_apply("first-gives-up", config_map("a", {"w": "1"}))
_apply("first-takes-back", config_map("a", {"x": "6"}), 409)
_apply("force-is-zero", config_map("a", {"x": "6"}), 409, query="&force=0")
_apply("force-is-anything", config_map("a", {"x": "6"}), query="&force=yes")
APPLY.patch("update-takes", "merge", MAPS + "/a?fieldManager=editor", {"data": {"x": "edited"}})
_apply("conflict-with-an-update", config_map("a", {"x": "6"}), 409)
APPLY.patch("update-same-value", "merge", MAPS + "/a?fieldManager=another", {"data": {"x": "edited"}})
APPLY.patch(
    "user-agent",
    "merge",
    MAPS + "/a",
    {"data": {"ua": "1"}},
    headers={"User-Agent": "some-tool/v1.2 (linux)"},
)
APPLY.patch("long-user-agent", "merge", MAPS + "/a", {"data": {"u": "1"}}, headers={"User-Agent": "x" * 200})
_apply("same-name-as-an-updater", config_map("a", {"x": "edited"}), who="editor")
_apply("prune-what-another-owns", config_map("a", {}), who="editor")

# Not tracked, then applied.
APPLY.post("untracked", MAPS + "?fieldManager=maker", config_map("u", {"x": "1"}))
APPLY.patch("reset", "merge", MAPS + "/u", {"metadata": {"managedFields": [{}]}})
APPLY.patch("still-untracked", "merge", MAPS + "/u", {"data": {"y": "1"}})
_apply("before-first-apply", config_map("u", {"x": "2"}), 409, path=MAPS + "/u")
_apply("first-apply", config_map("u", {"x": "2"}), path=MAPS + "/u", query="&force=true")
APPLY.put("put-resets", MAPS + "/u", config_map("u", {"x": "2"}, metadata={"managedFields": []}))
APPLY.post("created-with-reset", MAPS, config_map("cr", {"x": "2"}, metadata={"managedFields": [{}]}))

# managedFields from clients.
_ENTRY = {
    "manager": "forged",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2020-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {"f:x": {}, "f:nope": {".": {}}}},
}


def _forged(name: str, code: int = 200, **change: Any) -> None:
    entry = {key: value for key, value in {**_ENTRY, **change}.items() if value is not None}
    body = config_map("f", {"x": "1"}, metadata={"managedFields": [entry]})
    APPLY.put(f"forged-{name}", MAPS + "/f", body, code)


APPLY.post("to-forge", MAPS, config_map("f", {"x": "1"}))
_forged("valid")
_forged("operation", operation="Destroy")
_forged("no-version", apiVersion=None)
_forged("other-version", apiVersion="v7")
_forged("type", fieldsType="FieldsV7")
_forged("no-type", fieldsType=None)
_forged("no-fields", fieldsV1=None)
_forged("element", fieldsV1={"f:data": {"nonsense": {}}})
_forged("unknown-element", fieldsV1={"f:data": {"q:x": {}, "f:x": {}}})
_forged("keys", fieldsV1={"f:metadata": {"f:ownerReferences": {'k:{"uid":"1"}': {}}}})
_forged("bad-keys", fieldsV1={"f:metadata": {"f:ownerReferences": {'k:{"uid"': {}}}})
_forged("long-manager", 422, manager="m" * 129)
_forged("no-manager", manager=None)
APPLY.post("created-forged", MAPS, config_map("cf", {"x": "1"}, metadata={"managedFields": [_ENTRY]}))
APPLY.patch(
    "json-patch-of-managers", "json", MAPS + "/f", [{"op": "remove", "path": "/metadata/managedFields"}]
)
APPLY.patch(
    "json-patch-empties-managers",
    "json",
    MAPS + "/f",
    [{"op": "replace", "path": "/metadata/managedFields", "value": []}],
)

# Refusals.
_apply("no-manager", config_map("a"), 422, who="")
_apply("long-manager", config_map("a"), 422, who="m" * 129)
_apply("unprintable-manager", config_map("a"), 422, who="a%07b")
_apply(
    "stale-version", config_map("a", {"x": "1"}, metadata={"resourceVersion": "1"}), 409, query="&force=true"
)
_apply("version-of-nothing", config_map("new", metadata={"resourceVersion": "1"}), 0, path=MAPS + "/new")
_apply("uid-of-nothing", config_map("new2", metadata={"uid": "1-2-3"}), 409, path=MAPS + "/new2")
_apply("other-uid", config_map("a", metadata={"uid": "1-2-3"}), 0)
_apply("other-name", config_map("b"), 400)
_apply("no-name-to-create", {"apiVersion": "v1", "kind": "ConfigMap"}, 400, path=MAPS + "/nameless")
_apply("other-namespace", config_map("a", metadata={"namespace": "default"}), 400)
_apply("other-kind", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, 400)
_apply("other-group", {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, 400)
_apply("no-kind", {"metadata": {"name": "a"}}, 400)
_apply("managers-in-it", config_map("a", metadata={"managedFields": [_ENTRY]}), 400)
_apply("unknown-field", {**config_map("a"), "dada": {"x": "y"}}, 500)
_apply("wrong-scalar", config_map("a", {"x": 5}), 500)
_apply("wrong-map", {**config_map("a"), "data": ["x"]}, 500)
_apply("empty-body", "", 400)
APPLY.patch(
    "cbor", "apply", MAPS + "/a", b"\xa0", 415, headers={"Content-Type": "application/apply-patch+cbor"}
)
_apply("bad-key", config_map("a", {"not a key": "1"}), 422)
_apply("force-is-empty", config_map("a", {"x": "6"}), query="&force")
_YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yy\ndata:\n  x: '1'\n"
_apply("yaml", _YAML, 201, path=MAPS + "/yy")
_apply("yaml-twice", _YAML + "  x: '2'\n", 400, path=MAPS + "/yy", query="&fieldValidation=Strict")
_apply("yaml-twice-warned", _YAML + "  x: '2'\n", path=MAPS + "/yy", query="&force=true")
_apply("yaml-twice-ignored", _YAML + "  x: '2'\n", path=MAPS + "/yy", query="&fieldValidation=Ignore")
_apply("status-of-nothing", of("v1", "Pod", "gone"), 404, path=PODS + "/gone/status")

# From client-side apply.
_CONFIG = '{"apiVersion":"v1","data":{"x":"1"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"cs"}}'
APPLY.post(
    "client-side",
    MAPS + "?fieldManager=kubectl-client-side-apply",
    config_map("cs", {"x": "1"}, metadata={"annotations": {_LAST: _CONFIG}}),
)
_apply("kubectl-goes-server-side", config_map("cs", {"x": "2"}), path=MAPS + "/cs", who="kubectl")
_apply("kubectl-again", config_map("cs", {"x": "3", "y": "4"}), path=MAPS + "/cs", who="kubectl")
_apply("not-kubectl", config_map("cs", {"x": "5"}), 409, path=MAPS + "/cs", who="argo")
APPLY.patch("annotation-stale", "merge", MAPS + "/cs?fieldManager=other", {"data": {"x": "9"}})
_apply("kubectl-conflicts", config_map("cs", {"x": "3"}), 409, path=MAPS + "/cs", who="kubectl")

# Workloads, their status and their scale.
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container("c")]}}


def _deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


_SELECTOR = {"matchLabels": {"app": "d"}}
_apply("deployment", _deployment(selector=_SELECTOR, template=_TEMPLATE, replicas=2), 201, path=DEPLOYMENT)
_apply("deployment-again", _deployment(selector=_SELECTOR, template=_TEMPLATE, replicas=2), path=DEPLOYMENT)
_apply("replicas-conflict", _deployment(replicas=3), 409, path=DEPLOYMENT, who="hpa")
_apply("replicas-shared", _deployment(replicas=2), path=DEPLOYMENT, who="hpa")
_apply("without-replicas", _deployment(selector=_SELECTOR, template=_TEMPLATE), path=DEPLOYMENT)
_apply("hpa-alone", _deployment(replicas=4), path=DEPLOYMENT, who="hpa")
_apply("unknown-in-spec", _deployment(replica=4), 500, path=DEPLOYMENT, who="hpa")
_apply("text-for-a-number", _deployment(replicas="4"), 500, path=DEPLOYMENT, who="hpa")
_apply(
    "container-twice",
    _deployment(template={"spec": {"containers": [container("c"), container("c")]}}),
    500,
    path=DEPLOYMENT,
)
_apply(
    "container-without-a-name",
    _deployment(template={"spec": {"containers": [{"image": "x"}]}}),
    422,
    path=DEPLOYMENT,
)
_apply("negative", _deployment(replicas=-1), 422, path=DEPLOYMENT, who="hpa")
_apply("empties-what-is-required", _deployment(template=_TEMPLATE), 422, path=DEPLOYMENT)
_STATUS = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"not": "kept"}},
    "spec": {"replicas": 9},
    "status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]},
}
_apply("status", _STATUS, path=DEPLOYMENT + "/status", who="controller", query="&force=true")
APPLY.patch(
    "status-by-merge", "merge", DEPLOYMENT + "/status?fieldManager=m", {"status": {"readyReplicas": 1}}
)
_apply("status-in-main", {**_deployment(), "status": {"replicas": 7}}, path=DEPLOYMENT, who="meddler")
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "${ns}"}}
_apply("scale-conflict", {**_SCALE, "spec": {"replicas": 6}}, 409, path=DEPLOYMENT + "/scale", who="scaler")
_apply(
    "scale",
    {**_SCALE, "spec": {"replicas": 6}},
    path=DEPLOYMENT + "/scale",
    who="scaler",
    query="&force=true",
)
APPLY.get("after-scale", DEPLOYMENT)
APPLY.put("scale-put", DEPLOYMENT + "/scale?fieldManager=k", {**_SCALE, "spec": {"replicas": 7}})
APPLY.get("after-scale-put", DEPLOYMENT)
APPLY.patch("scale-merge", "merge", DEPLOYMENT + "/scale?fieldManager=k", {"spec": {"replicas": 8}})
APPLY.get("after-scale-merge", DEPLOYMENT)
_apply("scale-other-kind", _deployment(replicas=1), 400, path=DEPLOYMENT + "/scale", who="scaler")
_apply("scale-of-nothing", {**_SCALE, "spec": {"replicas": 6}}, 404, path=APPS + "/deployments/x/scale")
APPLY.post("daemon-set", APPS + "/daemonsets", workload("DaemonSet", "ds"))
_apply("daemon-set-applied", {**workload("DaemonSet", "ds2")}, 201, path=APPS + "/daemonsets/ds2")

# Pods: what the server sets itself has no manager.
_apply("pod", pod("p", metadata={"labels": {"a": "b"}}), 201, path=PODS + "/p")
_POD_STATUS = {
    **of("v1", "Pod", "p"),
    "status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]},
}
_apply("pod-status", _POD_STATUS, path=PODS + "/p/status", who="kubelet")
_apply("pod-status-again", _POD_STATUS, path=PODS + "/p/status", who="kubelet")
_apply("pod-immutable", pod("p", containers=[container("other")]), 422, path=PODS + "/p", query="&force=true")
APPLY.patch(
    "ephemeral",
    "strategic",
    PODS + "/p/ephemeralcontainers?fieldManager=debugger",
    {"metadata": {"labels": {"x": "y"}}, "spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
    0,
)
APPLY.delete("delete-pod", PODS + "/p?gracePeriodSeconds=5", None, 0)
APPLY.get("deleted-pod", PODS + "/p", 0)
