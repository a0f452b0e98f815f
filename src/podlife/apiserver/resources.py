"""The table of what the API server serves: one row per resource. Adding a resource is adding a row.

The order of the rows is the order in which clients learn of the groups, which is the real server's: where two
groups offer the same name (events), the one that comes first is meant.
"""

from __future__ import annotations

from podlife.apiserver.resource import Resource

__all__ = ["RESOURCES", "STORED", "find", "group_versions"]

_APPS = "apps"
_EVENTS = "events.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"
_BATCH = "batch"
_POLICY = "policy"
_COORDINATION = "coordination.k8s.io"

_ALL = ("all",)
_CREATE = ("create",)
# A collection of namespaces is not deleted in one call: each has contents to be emptied first.
_NAMESPACE_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_POD_SUBRESOURCES = ("binding", "ephemeralcontainers", "eviction", "exec", "log", "resize", "status")

RESOURCES: tuple[Resource, ...] = (
    Resource("", "v1", "Binding", "bindings", verbs=_CREATE),
    Resource("", "v1", "ConfigMap", "configmaps", short_names=("cm",)),
    Resource("", "v1", "Endpoints", "endpoints", short_names=("ep",)),
    Resource("", "v1", "Event", "events", short_names=("ev",)),
    Resource(
        "",
        "v1",
        "Namespace",
        "namespaces",
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        verbs=_NAMESPACE_VERBS,
    ),
    Resource("", "v1", "Node", "nodes", namespaced=False, short_names=("no",), subresources=("status",)),
    Resource(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        short_names=("pvc",),
        subresources=("status",),
    ),
    Resource(
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        namespaced=False,
        short_names=("pv",),
        subresources=("status",),
    ),
    Resource("", "v1", "Pod", "pods", short_names=("po",), categories=_ALL, subresources=_POD_SUBRESOURCES),
    Resource(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        short_names=("rc",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource("", "v1", "Secret", "secrets"),
    Resource("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",)),
    Resource(
        "", "v1", "Service", "services", short_names=("svc",), categories=_ALL, subresources=("status",)
    ),
    Resource(_APPS, "v1", "ControllerRevision", "controllerrevisions"),
    Resource(
        _APPS, "v1", "DaemonSet", "daemonsets", short_names=("ds",), categories=_ALL, subresources=("status",)
    ),
    Resource(
        _APPS,
        "v1",
        "Deployment",
        "deployments",
        short_names=("deploy",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(
        _APPS,
        "v1",
        "ReplicaSet",
        "replicasets",
        short_names=("rs",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(
        _APPS,
        "v1",
        "StatefulSet",
        "statefulsets",
        short_names=("sts",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    Resource(_EVENTS, "v1", "Event", "events", short_names=("ev",), stored_as="events"),
    Resource(
        _AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False, verbs=_CREATE
    ),
    Resource(
        _AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        namespaced=False,
        verbs=_CREATE,
    ),
    Resource(
        _AUTHORIZATION,
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        namespaced=False,
        verbs=_CREATE,
    ),
    Resource(
        _BATCH, "v1", "CronJob", "cronjobs", short_names=("cj",), categories=_ALL, subresources=("status",)
    ),
    Resource(_BATCH, "v1", "Job", "jobs", categories=_ALL, subresources=("status",)),
    Resource(
        _POLICY,
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short_names=("pdb",),
        subresources=("status",),
    ),
    Resource(_COORDINATION, "v1", "Lease", "leases"),
)

STORED: tuple[Resource, ...] = tuple(row for row in RESOURCES if "list" in row.verbs)
"""The rows that hold objects; the others are only asked."""

_BY_NAME = {(row.group, row.version, row.plural): row for row in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    return _BY_NAME.get((group, version, plural))


def group_versions() -> tuple[tuple[str, str], ...]:
    """Every group and version that is served, once, in the order of the table."""
    return tuple(dict.fromkeys((row.group, row.version) for row in RESOURCES))
