"""Roles and bindings that every cluster has: upstream's, and those of podlife's own components.

Upstream's are in `bootstrap_policy.json`, which `tools/record_bootstrap_policy.py` records from kube-apiserver. Its
controllers have a service account each; podlife's run as one user, which has the roles of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.apiserver.authn import AUTHENTICATED, BOOTSTRAPPERS, CLUSTER_INFO, CONTROLLERS

GROUP = "rbac.authorization.k8s.io"
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_CONTROLLERS_ROLE, _NODE_ROLE, _CLUSTER_INFO_ROLE = (
    "podlife:controllers",
    "podlife:node",
    "podlife:cluster-info",
)
_UNAUTHENTICATED = "system:unauthenticated"

# Upstream's roles of the controllers that `podlife controllers` can run, under `system:controller:`.
_CONTROLLER_ROLES = (
    *(
        "certificate-controller",
        "cronjob-controller",
        "daemon-set-controller",
        "deployment-controller",
        "disruption-controller",
    ),
    *("endpoint-controller", "endpointslice-controller", "endpointslicemirroring-controller"),
    *("expand-controller", "generic-garbage-collector", "job-controller", "node-controller"),
    *("persistent-volume-binder", "pod-garbage-collector", "pv-protection-controller"),
    *("pvc-protection-controller", "replicaset-controller", "replication-controller"),
    *("resourcequota-controller", "root-ca-cert-publisher", "service-account-controller"),
    *("statefulset-controller", "ttl-after-finished-controller"),
)
_SCHEDULER_ROLES = ("system:kube-scheduler", "system:volume-scheduler")
_OWN_RULES: tuple[Object, ...] = (
    {"verbs": ["create"], "apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"]},
    {"verbs": ["delete", "list", "patch", "watch"], "apiGroups": [""], "resources": ["secrets"]},
    {"verbs": ["get", "list", "patch", "watch"], "apiGroups": [""], "resources": ["serviceaccounts"]},
)


@cache
def bootstrap_policy() -> Mapping[str, Sequence[Object]]:
    """Return the objects by the plural names of their kinds. They are shared: copy before you change them."""
    data = Path(__file__).with_name("bootstrap_policy.json").read_bytes()
    upstream: dict[str, list[Object]] = msgspec.json.decode(data)
    for plural, obj in _own_objects(upstream["clusterroles"]):
        upstream[plural].append(obj)
    return {plural: [_with_metadata(obj) for obj in objects] for plural, objects in upstream.items()}


@cache
def node_rules() -> Sequence[Object]:
    """What the Node authorizer allows to every node, apart from its rules about objects: upstream's `system:node`."""
    return _rules_of("system:node", bootstrap_policy()["clusterroles"])


def _own_objects(upstream: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    rules: list[Object] = []
    for name in (*(f"system:controller:{each}" for each in _CONTROLLER_ROLES), *_SCHEDULER_ROLES):
        rules += [rule for rule in _rules_of(name, upstream) if rule not in rules]
    # Those of podlife's own controllers: the class `local-path`, and tokens in Secrets.
    rules += _OWN_RULES
    yield from _cluster_role(_CONTROLLERS_ROLE, rules, _subject("User", CONTROLLERS.name))
    # The namespace's UID identifies the cluster, and a kubelet compares it with the one it joined.
    identity = _rule(["get"], "namespaces", ["kube-system"])
    yield from _cluster_role(_NODE_ROLE, [identity], _subject("Group", "system:nodes"))
    bootstrappers = _subject("Group", BOOTSTRAPPERS)
    yield (
        "clusterrolebindings",
        _binding("podlife:node-bootstrapper", "system:node-bootstrapper", bootstrappers),
    )
    namespace, name = CLUSTER_INFO
    role = {"rules": [_rule(["get"], "configmaps", [name])]}
    everyone = [_subject("Group", group) for group in (AUTHENTICATED, _UNAUTHENTICATED)]
    binding = _binding(_CLUSTER_INFO_ROLE, _CLUSTER_INFO_ROLE, *everyone, kind="Role")
    binding["metadata"]["namespace"] = namespace
    yield "roles", {"metadata": {"name": _CLUSTER_INFO_ROLE, "namespace": namespace}, **role}
    yield "rolebindings", binding


def _cluster_role(name: str, rules: list[Object], subject: Object) -> Iterator[tuple[str, Object]]:
    yield "clusterroles", {"metadata": {"name": name}, "rules": rules}
    yield "clusterrolebindings", _binding(name, name, subject)


def _rules_of(name: str, roles: Sequence[Object]) -> list[Object]:
    [rules] = [role["rules"] for role in roles if role["metadata"]["name"] == name]
    return list(rules)


def _rule(verbs: list[str], resource: str, names: list[str]) -> Object:
    return {"verbs": verbs, "apiGroups": [""], "resources": [resource], "resourceNames": names}


def _subject(kind: str, name: str) -> Object:
    return {"kind": kind, "apiGroup": GROUP, "name": name}


def _binding(name: str, role: str, *subjects: Object, kind: str = "ClusterRole") -> dict[str, Any]:
    ref = {"apiGroup": GROUP, "kind": kind, "name": role}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)}


def _with_metadata(obj: Object) -> Object:
    meta = obj["metadata"]
    labels = {**_LABELS, **meta.get("labels", {})}
    return {**obj, "metadata": {**meta, "labels": labels, "annotations": {AUTO_UPDATE: "true"}}}
