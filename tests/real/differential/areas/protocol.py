"""Requests that are wrong in themselves, who may ask, and what clients ask before they ask."""

from __future__ import annotations

import json
from typing import Any

from tests.real.differential.areas.objects import (
    APPS,
    CORE,
    LEASES,
    NODES,
    PODS,
    bind,
    config_map,
    of,
    phase,
    pod,
)
from tests.real.differential.steps import Area

ERRORS = Area("errors")
MAPS = CORE + "/configmaps"
ERRORS.post("malformed", PODS, "{", 400)
ERRORS.post("not-an-object", PODS, "[1, 2]", 400)
ERRORS.post("a-string", PODS, '"text"', 400)
ERRORS.post("empty", PODS, "", 400)
ERRORS.post("trailing-text", PODS, json.dumps(pod("x")) + "}", 400)
ERRORS.post("very-deep", PODS, "[" * 20000, 400)
ERRORS.post("deep-in-an-object", MAPS, '{"a":' * 20000 + "1" + "}" * 20000, 400)
ERRORS.post("not-utf-8", MAPS, b'{"metadata":{"name":"\xff"}}', 422)
ERRORS.post("no-kind", PODS, {}, 422)
ERRORS.post("xml", PODS, "<pod/>", 415, headers={"Content-Type": "application/xml"})
ERRORS.post("text", PODS, "pod", 415, headers={"Content-Type": "text/plain"})
ERRORS.post("no-content-type", MAPS, config_map("plain"), headers={"Content-Type": ""})
ERRORS.post(
    "charset", MAPS, config_map("charset"), headers={"Content-Type": "application/json; charset=utf-8"}
)
ERRORS.post(
    "yaml",
    MAPS,
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\n",
    headers={"Content-Type": "application/yaml"},
)
ERRORS.post("too-large", MAPS, config_map("big", {"a": "x" * 3_200_000}), 413)
ERRORS.post("large-but-valid-size", MAPS, config_map("big", {"a": "x" * 1_100_000}), 422)
ERRORS.get("unknown-resource", CORE + "/gadgets", 404)
ERRORS.get("unknown-group", "/apis/example.com/v1/gadgets", 404)
ERRORS.get("unknown-version", "/apis/apps/v9/deployments", 404)
ERRORS.get("unknown-path", "/nothing/here", 404)
ERRORS.get("unknown-subresource", PODS + "/x/shadow", 404)
ERRORS.get("too-long-a-path", PODS + "/x/status/more/and/more", 404)
ERRORS.post("post-to-a-name", PODS + "/x", pod("x"), 405)
ERRORS.put("put-to-a-collection", PODS, pod("x"), 405)
ERRORS.patch("patch-of-a-collection", "merge", PODS, {}, 405)
ERRORS.put("put-of-a-binding", PODS + "/x/binding", bind("x", "n"), 405)
ERRORS.add("unknown-method", "BREW", PODS, 405)
ERRORS.add("options-method", "OPTIONS", PODS, 405)
ERRORS.get("trailing-slash", PODS + "/", 200)
ERRORS.get("double-slash", "/api/v1//namespaces", 404)
ERRORS.get("version-alone", "/api/v1/namespaces/${ns}/", 200)
ERRORS.get("old-group-name", "/apis/extensions/v1beta1/deployments", 404)
ERRORS.post("create-with-a-status", PODS + "/x/status", pod("x"), 405)
ERRORS.delete("delete-a-status", PODS + "/x/status", None, 405)
ERRORS.get("unknown-query-is-ignored", MAPS + "?colour=blue")
ERRORS.post("manager-too-long", MAPS + "?fieldManager=" + "x" * 200, config_map("managed"), 422)
ERRORS.post("dry-run-twice", MAPS + "?dryRun=All&dryRun=All", config_map("dry"), 201)

ACCESS = Area("access")


def _review(**attributes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }


REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ACCESS.get("nobody-knows-you", PODS, 401, headers={"Authorization": "Bearer wrong"})
ACCESS.get("basic-is-not-offered", PODS, 401, headers={"Authorization": "Basic YTpi"})
ACCESS.get("anonymous", PODS, 401, headers={"Authorization": ""})
ACCESS.get("anonymous-health", "/healthz", headers={"Authorization": ""})
ACCESS.get("anonymous-version", "/version", 401, headers={"Authorization": ""})
ACCESS.get("list", PODS, 403, who="nobody")
ACCESS.get("get", PODS + "/p", 403, who="nobody")
ACCESS.watch("watch", PODS, 403, who="nobody")
ACCESS.post("create", PODS, pod("p"), 403, who="nobody")
ACCESS.put("update", PODS + "/p", pod("p"), 403, who="nobody")
ACCESS.patch("patch-status", "merge", PODS + "/p/status", {}, 403, who="nobody")
ACCESS.delete("delete", PODS + "/p", None, 403, who="nobody")
ACCESS.delete("delete-collection", PODS, None, 403, who="nobody")
ACCESS.get("cluster-wide", NODES, 403, who="nobody")
ACCESS.get("another-group", APPS + "/deployments", 403, who="nobody")
ACCESS.get("a-path", "/metrics", 403, who="nobody")
ACCESS.get("discovery-is-open", "/api", who="nobody", pick=lambda body: body.get("versions"))
ACCESS.get("unknown-resource", CORE + "/gadgets", 403, who="nobody")
ACCESS.post("may-i-as-admin", REVIEWS, _review(verb="delete", resource="pods", namespace="${ns}"))
ACCESS.post(
    "may-i-as-nobody", REVIEWS, _review(verb="delete", resource="pods", namespace="${ns}"), who="nobody"
)
ACCESS.post(
    "a-review-as-a-table",
    REVIEWS,
    _review(verb="get", resource="pods"),
    406,
    headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
)
ACCESS.get("extra-values-of-nobody", PODS, 400, headers={"Impersonate-Extra-scopes": "view"})
ACCESS.post("may-i-nothing-asked", REVIEWS, {"spec": {}}, 422)
ACCESS.post(
    "who-am-i",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    pick=lambda body: {
        "groups": sorted(body["status"]["userInfo"]["groups"]),
        "username": body["status"]["userInfo"]["username"],
    },
    who="nobody",
)

# The rules of NodeRestriction: a node changes itself, its lease and the pods bound to it.
ACCESS.post("node-creates-itself", NODES, of("v1", "Node", "node-a"), who="node-a")
ACCESS.post("node-creates-another", NODES, of("v1", "Node", "node-z"), 403, who="node-a")
_GENERATED = {"metadata": {"generateName": "node-a"}}
ACCESS.post("node-generates-another", NODES, _GENERATED, 403, who="node-a")
ACCESS.post(
    "node-generates-a-lease",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    _GENERATED,
    403,
    who="node-a",
)
ACCESS.patch(
    "node-labels-itself", "merge", NODES + "/node-a", {"metadata": {"labels": {"a": "b"}}}, who="node-a"
)
ACCESS.patch(
    "node-takes-a-protected-label",
    "merge",
    NODES + "/node-a",
    {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}},
    403,
    who="node-a",
)
ACCESS.patch(
    "node-taints-itself",
    "merge",
    NODES + "/node-a",
    {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    403,
    who="node-a",
)
ACCESS.patch(
    "node-reports", "merge", NODES + "/node-a/status", {"status": {"phase": "Running"}}, who="node-a"
)
ACCESS.patch("node-reports-for-another", "merge", NODES + "/node-a/status", {"status": {}}, 403, who="node-b")
ACCESS.delete("node-deletes-itself", NODES + "/node-a", None, 403, who="node-a")
ACCESS.post(
    "node-lease-elsewhere", LEASES, of("coordination.k8s.io/v1", "Lease", "node-a"), 403, who="node-a"
)
_node_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ACCESS.post(
    "node-lease",
    _node_leases,
    of("coordination.k8s.io/v1", "Lease", "node-a", spec={"holderIdentity": "node-a"}),
    who="node-a",
)
ACCESS.post(
    "node-lease-of-another", _node_leases, of("coordination.k8s.io/v1", "Lease", "node-b"), 403, who="node-a"
)
ACCESS.post("pod-of-node-a", PODS, pod("mine", nodeName="node-a"))
ACCESS.post("pod-of-node-b", PODS, pod("theirs", nodeName="node-b"))
ACCESS.get("node-lists-its-pods", PODS + "?fieldSelector=spec.nodeName%3Dnode-a", who="node-a")
ACCESS.get(
    "node-lists-its-pods-everywhere", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a", who="node-a"
)
ACCESS.get("node-lists-all-pods", "/api/v1/pods", 403, who="node-a")
ACCESS.get("node-reads-its-pod", PODS + "/mine", who="node-a")
ACCESS.patch("node-reports-its-pod", "merge", PODS + "/mine/status", phase("Running"), who="node-a")
ACCESS.patch(
    "node-reports-another-pod", "merge", PODS + "/theirs/status", phase("Running"), 403, who="node-a"
)
ACCESS.patch(
    "node-changes-its-pod", "merge", PODS + "/mine", {"metadata": {"labels": {"a": "b"}}}, 403, who="node-a"
)
ACCESS.delete("node-deletes-another-pod", PODS + "/theirs", None, 403, who="node-a")
ACCESS.delete("node-deletes-its-pod", PODS + "/mine", who="node-a")
ACCESS.post("node-creates-a-plain-pod", PODS, pod("plain", nodeName="node-a"), 403, who="node-a")
_mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
ACCESS.post(
    "node-creates-a-mirror-elsewhere",
    PODS,
    pod("mirror", nodeName="node-b", metadata=_mirror),
    403,
    who="node-a",
)
ACCESS.get("node-reads-a-strange-secret", CORE + "/secrets/s", 403, who="node-a")
ACCESS.post("node-creates-a-map", MAPS, config_map("m"), 403, who="node-a")
ACCESS.get("node-reads-nodes", NODES + "/node-a", who="node-a")
ACCESS.get("node-reads-services", "/api/v1/services?fieldSelector=metadata.namespace%3D${ns}", who="node-a")
ACCESS.delete("node-cleanup", NODES + "/node-a")

DISCOVERY = Area("discovery", namespace=False)
SERVED = {
    "apps",
    "batch",
    "coordination.k8s.io",
    "policy",
    "events.k8s.io",
    "authorization.k8s.io",
    "authentication.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
}
PLURALS = {
    "v1": {
        "namespaces", "pods", "nodes", "events", "configmaps", "secrets", "serviceaccounts", "services", "endpoints",
        "persistentvolumes", "persistentvolumeclaims", "podtemplates", "replicationcontrollers",
    },
    "authorization.k8s.io/v1": {"selfsubjectaccessreviews"},
    "authentication.k8s.io/v1": {"selfsubjectreviews"},
}  # fmt: skip
SUBRESOURCES = {"status", "scale", "binding", "eviction", "log", "exec", "finalize"}


def _resources(body: Any) -> Any:
    """Of a group's resources those that podlife serves; the storage hash is the server's own business."""
    wanted = PLURALS.get(body["groupVersion"])
    kept = []
    for resource in body["resources"]:
        plural, _, subresource = resource["name"].partition("/")
        if (wanted is None or plural in wanted) and (not subresource or subresource in SUBRESOURCES):
            kept.append({key: value for key, value in resource.items() if key != "storageVersionHash"})
    return {**body, "resources": sorted(kept, key=lambda resource: str(resource["name"]))}


def _groups(body: Any) -> Any:
    kept = [group for group in body["groups"] if group["name"] in SERVED]
    for group in kept:
        group["versions"] = [one for one in group["versions"] if one["version"] == "v1"]
    return {**body, "groups": sorted(kept, key=lambda group: str(group["name"]))}


def _aggregated(body: Any) -> Any:
    """The groups and their resources by name and scope; freshness and unknown groups left out."""
    shown = {}
    for group in body["items"]:
        name = group["metadata"].get("name", "")
        if name in SERVED | {""}:
            shown[name] = [version["version"] for version in group["versions"] if version["version"] == "v1"]
    return shown


DISCOVERY.get("api", "/api", pick=lambda body: {"kind": body["kind"], "versions": body["versions"]})
DISCOVERY.get("apis", "/apis", pick=_groups)
for group in (
    "/api/v1",
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/coordination.k8s.io/v1",
    "/apis/policy/v1",
    "/apis/events.k8s.io/v1",
    "/apis/flowcontrol.apiserver.k8s.io/v1",
    "/apis/rbac.authorization.k8s.io/v1",
):
    DISCOVERY.get(f"resources-of{group.replace('/', '-')}", group, pick=_resources)
for group in ("authorization", "authentication"):
    DISCOVERY.get(f"resources-of-{group}", f"/apis/{group}.k8s.io/v1", pick=_resources)
DISCOVERY.get("group", "/apis/apps")
DISCOVERY.get("group-missing", "/apis/nothing", 404)
_aggregate = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
}
DISCOVERY.get("aggregated-apis", "/apis", headers=_aggregate, pick=_aggregated)
DISCOVERY.get("aggregated-api", "/api", headers=_aggregate, pick=_aggregated)


def _whole_groups(body: Any) -> Any:
    names = ("flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io", "coordination.k8s.io")
    found = {group["metadata"].get("name"): group["versions"] for group in body["items"]}
    return {name: [each for each in found[name] if each["version"] == "v1"] for name in names}


DISCOVERY.get("aggregated-groups", "/apis", headers=_aggregate, pick=_whole_groups)
_beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
for name, form in {
    "beta-or-plain": f"{_beta},application/json",
    "both": f"{_beta},application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "anything": "*/*",
    "table-or-plain": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
}.items():
    DISCOVERY.get(
        f"aggregated-{name}",
        "/apis",
        headers={"Accept": form},
        pick=lambda body: (body["kind"], body.get("apiVersion")),
    )
for name, form in {
    "beta": _beta,
    "unknown": "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "without-media-type": "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
}.items():
    DISCOVERY.get(f"aggregated-{name}", "/apis", 406, headers={"Accept": form})
DISCOVERY.get("group-as-yaml", "/apis/apps", headers={"Accept": "application/yaml"})
DISCOVERY.get(
    "resources-as-a-table", "/api/v1", 406, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
)
DISCOVERY.get(
    "version", "/version", pick=lambda body: sorted(set(body) & {"major", "minor", "gitVersion", "platform"})
)
for path in ("healthz", "livez", "readyz"):
    DISCOVERY.get(path, f"/{path}")
    DISCOVERY.get(f"{path}-verbose", f"/{path}?verbose", pick=lambda body: body.splitlines()[-1])
DISCOVERY.get("one-check", "/livez/ping")
DISCOVERY.get("metrics", "/metrics", pick=lambda body: "apiserver_request_total" in body)
DISCOVERY.get(
    "openapi-index",
    "/openapi/v3",
    pick=lambda body: sorted(set(body["paths"]) & {"api/v1", "apis/apps/v1", "apis/policy/v1"}),
)
DISCOVERY.get("openapi-v3", "/openapi/v3/apis/apps/v1", pick=lambda body: body["openapi"])
DISCOVERY.get("openapi-v2", "/openapi/v2", pick=lambda body: body["swagger"])
DISCOVERY.get("openapi-missing", "/openapi/v3/apis/nothing/v1", 404)
DISCOVERY.get(
    "root",
    "/",
    pick=lambda body: sorted(
        set(body["paths"])
        & {
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/metrics",
            "/openapi/v2",
            "/version",
        }
    ),
)
