"""Roles, bindings, subjects and questions for both servers: the same on each, in the same order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from podlife.api.codec import Object

GROUP = "rbac.authorization.k8s.io"
NAMESPACES = ("rbac-a", "rbac-b")
AUTHENTICATED = "system:authenticated"


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> Object:
    found = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return {**found, "resourceNames": names.split(",")} if names else found


def paths(verbs: str, urls: str) -> Object:
    return {"verbs": verbs.split(","), "nonResourceURLs": urls.split(",")}


def role(name: str, *rules: Object, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, "labels": more.pop("labels", {}), **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": meta,
        "rules": list(rules),
        **more,
    }


def subject(text: str) -> Object:
    """`User/jane`, `Group/people` or `ServiceAccount/robot/its-namespace`."""
    kind, name, *namespace = text.split("/")
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, **({"namespace": namespace[0]} if namespace else {})}
    return {"kind": kind, "name": name, "apiGroup": GROUP}


def binding(name: str, to: str, *subjects: str, namespace: str = "") -> Object:
    kind, _, role_name = to.rpartition("/")
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": GROUP, "kind": kind or "ClusterRole", "name": role_name},
        "subjects": [subject(each) for each in subjects],
    }


OBJECTS: list[Object] = [
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES),
    role("t-read-pods", rule("get,list,watch", "pods,pods/log")),
    role("t-all-of-pods", rule("*", "pods/*")),
    role("t-any-status", rule("get,patch", "*/status", "*")),
    role("t-everything-of-apps", rule("*", "*", "apps")),
    role("t-one-map", rule("get,list,watch,delete,deletecollection", "configmaps", names="one,two")),
    role("t-paths", paths("get", "/metrics,/logs/*,/a*b"), paths("*", "/debug/**")),
    role("t-wide", rule("*", "*", "*")),
    role("t-urls", paths("*", "*")),
    role(
        "t-people", rule("impersonate", "users,groups", names="jane"), rule("impersonate", "serviceaccounts")
    ),
    role("t-widgets", rule("get", "widgets", "example.com"), labels={f"{GROUP}/aggregate-to-view": "true"}),
    role("t-deep", rule("list", "deployments/scale,*/scale", "apps,extensions")),
    role(
        "t-sum",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {f"{GROUP}/aggregate-to-view": "true"}}]},
    ),
    role("t-local", rule("create,get", "secrets"), namespace="rbac-a"),
    role("t-local", rule("list", "secrets"), namespace="rbac-b"),
    role("t-named", rule("get,update", "services,services/status", names="web"), namespace="rbac-a"),
    binding("t-read-pods", "t-read-pods", "Group/readers", "User/reader"),
    binding("t-all-of-pods", "t-all-of-pods", "User/star"),
    binding("t-any-status", "t-any-status", "User/status", "ServiceAccount/robot/rbac-a"),
    binding("t-apps", "t-everything-of-apps", "Group/apps"),
    binding("t-one-map", "t-one-map", "User/mapper"),
    binding("t-paths", "t-paths", "User/paths"),
    binding("t-wide", "t-wide", "User/wide"),
    binding("t-urls", "t-urls", "User/urls", "Group/urls"),
    binding("t-people", "t-people", "User/actor"),
    binding("t-deep", "t-deep", "User/deep"),
    binding("t-sum", "t-sum", "User/sum"),
    binding("t-view", "view", "User/viewer"),
    binding("t-gone", "t-is-gone", "User/lost", "Group/lost"),
    binding("t-gone-too", "t-is-gone-too", "User/lost"),
    binding("t-all-accounts", "t-deep", "Group/system:serviceaccounts"),
    binding("t-admin", "admin", "User/boss", "Group/bosses", namespace="rbac-a"),
    binding("t-edit", "edit", "User/editor", "ServiceAccount/robot", namespace="rbac-a"),
    binding("t-view", "view", "Group/system:serviceaccounts:rbac-b", namespace="rbac-b"),
    binding("t-local", "Role/t-local", "User/local", "Group/locals", namespace="rbac-a"),
    binding("t-local", "Role/t-local", "User/local", namespace="rbac-b"),
    binding("t-named", "Role/t-named", "User/named", "ServiceAccount/other/rbac-b", namespace="rbac-a"),
    binding("t-gone", "Role/t-is-gone", "User/lost", "User/local", namespace="rbac-a"),
    binding("t-wide-here", "t-wide", "User/king", namespace="rbac-b"),
    binding("t-paths-here", "t-paths", "User/local", namespace="rbac-a"),
    # The last of each kind: where they are known, everything before them is.
    role("t-last", rule("get", "lasts", "example.com")),
    role("t-last", rule("get", "lasts", "example.com"), namespace="rbac-b"),
    binding("t-last", "t-last", "User/last"),
    binding("t-last", "Role/t-last", "User/last-here", namespace="rbac-b"),
]


def _account(namespace: str, name: str) -> Object:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED]
    return {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}


def subjects() -> list[Object]:
    """40 users, with their groups."""
    users = (
        *("reader", "star", "status", "mapper", "paths", "wide", "urls", "actor", "deep", "sum", "viewer"),
        *("lost", "boss", "editor", "local", "named", "king", "jane"),
    )
    found: list[Object] = [{"user": user, "groups": [AUTHENTICATED]} for user in users]
    memberships = ("readers", "apps", "urls,lost", "bosses", "locals,readers", "system:masters")
    found += [{"user": "member", "groups": [*each.split(","), AUTHENTICATED]} for each in memberships]
    found += [_account("rbac-a", "robot"), _account("rbac-b", "robot"), _account("rbac-b", "other")]
    found += [
        _account("kube-system", name)
        for name in (
            "replicaset-controller",
            "generic-garbage-collector",
            "namespace-controller",
            "token-cleaner",
        )
    ]
    found += [
        {"user": "system:anonymous", "groups": ["system:unauthenticated"]},
        {"user": "nobody", "groups": []},
        {"user": "system:kube-scheduler", "groups": [AUTHENTICATED]},
        {"user": "system:kube-proxy", "groups": [AUTHENTICATED]},
        {"user": "system:node:node-a", "groups": ["system:nodes", AUTHENTICATED]},
        {"user": "system:node:node-b", "groups": ["system:nodes"]},
        {"user": "node-a", "groups": ["system:nodes", AUTHENTICATED]},
        {"user": "reader", "groups": ["apps", "readers", AUTHENTICATED]},
        {"user": "", "groups": ["readers"]},
    ]
    return found


_RESOURCES = (
    *("/pods", "/pods", "/pods/log", "/pods/status", "/pods/exec", "/configmaps", "/configmaps", "/secrets"),
    *("/secrets", "/services", "/services/status", "/nodes", "/nodes/status", "/events", "/namespaces"),
    *("/persistentvolumeclaims", "/serviceaccounts", "/serviceaccounts/token", "/users", "/groups", "/*"),
    *("apps/deployments", "apps/deployments/scale", "apps/deployments/status", "apps/replicasets", "*/*"),
    *("batch/jobs", "coordination.k8s.io/leases", "example.com/widgets", "extensions/deployments/scale"),
    *(f"{GROUP}/{plural}" for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")),
    *("authorization.k8s.io/selfsubjectaccessreviews", "authorization.k8s.io/subjectaccessreviews"),
    *("certificates.k8s.io/certificatesigningrequests", "policy/poddisruptionbudgets"),
    *("discovery.k8s.io/endpointslices", "storage.k8s.io/csinodes", "authentication.k8s.io/tokenreviews"),
)
_VERBS = (
    *("get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    *("impersonate", "bind", "escalate", "*"),
)
_PATHS = (
    *("/", "/api", "/api/v1", "/apis/apps/v1", "/healthz", "/livez", "/readyz", "/version", "/version/"),
    *(
        "/metrics",
        "/logs",
        "/logs/",
        "/logs/x/y",
        "/a*b",
        "/axb",
        "/debug",
        "/debug/pprof",
        "/openapi/v3",
        "*",
    ),
)


def questions() -> Iterator[Object]:
    """200 questions, chosen once: about resources, and about paths."""
    chance = random.Random(15)
    for number in range(170):
        group, resource, *rest = _RESOURCES[number % len(_RESOURCES)].split("/")
        asked = {
            "verb": chance.choice(_VERBS),
            "group": group,
            "resource": resource,
            "subresource": rest[0] if rest else "",
            "namespace": chance.choice(("", "rbac-a", "rbac-a", "rbac-b", "kube-system", "kube-node-lease")),
            "name": chance.choice(
                ("", "", "one", "web", "jane", "node-a", "extension-apiserver-authentication")
            ),
        }
        yield {"resourceAttributes": asked}
    for number in range(30):
        verb = "post" if number >= len(_PATHS) else "get"
        yield {"nonResourceAttributes": {"verb": verb, "path": _PATHS[number % len(_PATHS)]}}
