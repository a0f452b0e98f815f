"""Table of the resources that the API server serves: one row each. To add a resource, add a row.

Rows are in the order in which discovery lists the groups, which is kube-apiserver's: if two groups offer the same
name (events), the first one is meant.
"""

from __future__ import annotations

from functools import partial

from podlife.apiserver import printers, strategies
from podlife.apiserver.resource import Resource
from podlife.apiserver.strategies import SELECTABLE
from podlife.apiserver.strategies.core.events import from_core, to_core

_core = partial(Resource, "", "v1")
_apps = partial(Resource, "apps", "v1")
_events = partial(Resource, "events.k8s.io", "v1")
_authentication = partial(Resource, "authentication.k8s.io", "v1")
_authorization = partial(Resource, "authorization.k8s.io", "v1")
_batch = partial(Resource, "batch", "v1")
_certificates = partial(Resource, "certificates.k8s.io", "v1")
_policy = partial(Resource, "policy", "v1")
_coordination = partial(Resource, "coordination.k8s.io", "v1")

_ALL = ("all",)
_CREATE = ("create",)
# Namespaces have no deletecollection: each must be emptied first.
_NAMESPACE_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_POD_SUBRESOURCES = ("binding", "ephemeralcontainers", "eviction", "exec", "log", "resize", "status")

RESOURCES: tuple[Resource, ...] = (
    _core("Binding", "bindings", verbs=_CREATE),
    _core(
        "ConfigMap",
        "configmaps",
        strategy=strategies.CONFIG_MAPS,
        printer=printers.CONFIG_MAPS,
        short_names=("cm",),
    ),
    _core(
        "Endpoints",
        "endpoints",
        strategy=strategies.ENDPOINTS,
        printer=printers.ENDPOINTS,
        short_names=("ep",),
    ),
    _core(
        "Event",
        "events",
        strategy=strategies.EVENTS,
        selectable=SELECTABLE["events"],
        printer=printers.EVENTS,
        short_names=("ev",),
    ),
    _core(
        "Namespace",
        "namespaces",
        strategy=strategies.NAMESPACES,
        selectable=SELECTABLE["namespaces"],
        printer=printers.NAMESPACES,
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        subresource_strategies={"finalize": strategies.NAMESPACE_FINALIZE},
        verbs=_NAMESPACE_VERBS,
    ),
    _core(
        "Node",
        "nodes",
        strategy=strategies.NODES,
        selectable=SELECTABLE["nodes"],
        printer=printers.NODES,
        namespaced=False,
        short_names=("no",),
        subresources=("status",),
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        strategy=strategies.PERSISTENT_VOLUME_CLAIMS,
        printer=printers.PERSISTENT_VOLUME_CLAIMS,
        short_names=("pvc",),
        subresources=("status",),
    ),
    _core(
        "PersistentVolume",
        "persistentvolumes",
        strategy=strategies.PERSISTENT_VOLUMES,
        printer=printers.PERSISTENT_VOLUMES,
        namespaced=False,
        short_names=("pv",),
        subresources=("status",),
    ),
    _core(
        "Pod",
        "pods",
        strategy=strategies.PODS,
        selectable=SELECTABLE["pods"],
        printer=printers.PODS,
        short_names=("po",),
        categories=_ALL,
        subresources=_POD_SUBRESOURCES,
        subresource_strategies={
            "ephemeralcontainers": strategies.POD_EPHEMERAL_CONTAINERS,
            "resize": strategies.POD_RESIZE,
        },
    ),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        strategy=strategies.REPLICATION_CONTROLLERS,
        selectable=SELECTABLE["replicationcontrollers"],
        printer=printers.REPLICATION_CONTROLLERS,
        short_names=("rc",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _core(
        "Secret",
        "secrets",
        strategy=strategies.SECRETS,
        selectable=SELECTABLE["secrets"],
        printer=printers.SECRETS,
    ),
    _core(
        "ServiceAccount",
        "serviceaccounts",
        strategy=strategies.SERVICE_ACCOUNTS,
        printer=printers.SERVICE_ACCOUNTS,
        short_names=("sa",),
    ),
    _core(
        "Service",
        "services",
        strategy=strategies.SERVICES,
        selectable=SELECTABLE["services"],
        printer=printers.SERVICES,
        short_names=("svc",),
        categories=_ALL,
        subresources=("status",),
    ),
    _apps(
        "ControllerRevision",
        "controllerrevisions",
        strategy=strategies.CONTROLLER_REVISIONS,
        printer=printers.CONTROLLER_REVISIONS,
    ),
    _apps(
        "DaemonSet",
        "daemonsets",
        strategy=strategies.DAEMON_SETS,
        printer=printers.DAEMON_SETS,
        short_names=("ds",),
        categories=_ALL,
        subresources=("status",),
    ),
    _apps(
        "Deployment",
        "deployments",
        strategy=strategies.DEPLOYMENTS,
        printer=printers.DEPLOYMENTS,
        short_names=("deploy",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _apps(
        "ReplicaSet",
        "replicasets",
        strategy=strategies.REPLICA_SETS,
        printer=printers.REPLICA_SETS,
        short_names=("rs",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _apps(
        "StatefulSet",
        "statefulsets",
        strategy=strategies.STATEFUL_SETS,
        printer=printers.STATEFUL_SETS,
        short_names=("sts",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _events(
        "Event",
        "events",
        strategy=strategies.EVENTS_V1,
        selectable=SELECTABLE["events.events.k8s.io"],
        printer=printers.EVENTS,
        short_names=("ev",),
        stored_as="events",
        from_stored=from_core,
        to_stored=to_core,
    ),
    _authentication("SelfSubjectReview", "selfsubjectreviews", namespaced=False, verbs=_CREATE),
    _authentication("TokenReview", "tokenreviews", namespaced=False, verbs=_CREATE),
    _authorization("LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE),
    _authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False, verbs=_CREATE),
    _authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False, verbs=_CREATE),
    _authorization("SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=_CREATE),
    _batch(
        "CronJob",
        "cronjobs",
        strategy=strategies.CRON_JOBS,
        printer=printers.CRON_JOBS,
        short_names=("cj",),
        categories=_ALL,
        subresources=("status",),
    ),
    _batch(
        "Job",
        "jobs",
        strategy=strategies.JOBS,
        selectable=SELECTABLE["jobs.batch"],
        printer=printers.JOBS,
        categories=_ALL,
        subresources=("status",),
    ),
    _certificates(
        "CertificateSigningRequest",
        "certificatesigningrequests",
        namespaced=False,
        short_names=("csr",),
        verbs=_CREATE,
    ),
    _policy(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        strategy=strategies.POD_DISRUPTION_BUDGETS,
        printer=printers.POD_DISRUPTION_BUDGETS,
        short_names=("pdb",),
        subresources=("status",),
    ),
    _coordination("Lease", "leases", strategy=strategies.LEASES, printer=printers.LEASES),
)

STORED: tuple[Resource, ...] = tuple(row for row in RESOURCES if "list" in row.verbs)
"""Rows whose objects are stored."""

_BY_NAME = {(row.group, row.version, row.plural): row for row in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    return _BY_NAME.get((group, version, plural))


def group_versions() -> tuple[tuple[str, str], ...]:
    """Every served group and version, once, in the order of the table."""
    return tuple(dict.fromkeys((row.group, row.version) for row in RESOURCES))
