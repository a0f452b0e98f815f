"""Which cases belong to which resource and to which file of recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import podlife.apiserver.strategies as kinds
from podlife.apiserver.resource import Resource
from podlife.apiserver.strategies.strategy import Strategy
from tests.unit.apiserver.strategies import cases_core as core
from tests.unit.apiserver.strategies import cases_pods as pods
from tests.unit.apiserver.strategies import cases_workloads as workloads


def _row(group: str, kind: str, plural: str, strategy: Strategy, *, namespaced: bool = True) -> Resource:
    return Resource(group, "v1", kind, plural, namespaced=namespaced, strategy=strategy)


CREATES: list[tuple[str, Resource, Callable[[], Iterator[pods.Case]]]] = [
    ("pods", _row("", "Pod", "pods", kinds.PODS), pods.cases),
    ("workloads", _row("apps", "Deployment", "deployments", kinds.DEPLOYMENTS), workloads.deployments),
    ("workloads", _row("apps", "ReplicaSet", "replicasets", kinds.REPLICA_SETS), workloads.replica_sets),
    ("workloads", _row("apps", "DaemonSet", "daemonsets", kinds.DAEMON_SETS), workloads.daemon_sets),
    ("workloads", _row("apps", "StatefulSet", "statefulsets", kinds.STATEFUL_SETS), workloads.stateful_sets),
    (
        "workloads",
        _row("", "ReplicationController", "replicationcontrollers", kinds.REPLICATION_CONTROLLERS),
        workloads.replication_controllers,
    ),
    ("workloads", _row("batch", "Job", "jobs", kinds.JOBS), workloads.jobs),
    ("workloads", _row("batch", "CronJob", "cronjobs", kinds.CRON_JOBS), workloads.cron_jobs),
    (
        "workloads",
        _row("apps", "ControllerRevision", "controllerrevisions", kinds.CONTROLLER_REVISIONS),
        workloads.revisions,
    ),
    ("core", _row("", "Namespace", "namespaces", kinds.NAMESPACES, namespaced=False), core.namespaces),
    ("core", _row("", "Node", "nodes", kinds.NODES, namespaced=False), core.nodes),
    ("core", _row("", "ConfigMap", "configmaps", kinds.CONFIG_MAPS), core.config_maps),
    ("core", _row("", "Secret", "secrets", kinds.SECRETS), core.secrets),
    ("core", _row("", "ServiceAccount", "serviceaccounts", kinds.SERVICE_ACCOUNTS), core.service_accounts),
    ("core", _row("", "Service", "services", kinds.SERVICES), core.services),
    ("core", _row("", "Endpoints", "endpoints", kinds.ENDPOINTS), core.endpoints),
    (
        "core",
        _row("", "PersistentVolumeClaim", "persistentvolumeclaims", kinds.PERSISTENT_VOLUME_CLAIMS),
        core.claims,
    ),
    (
        "core",
        _row("", "PersistentVolume", "persistentvolumes", kinds.PERSISTENT_VOLUMES, namespaced=False),
        core.volumes,
    ),
    ("core", _row("coordination.k8s.io", "Lease", "leases", kinds.LEASES), core.leases),
    (
        "core",
        _row("policy", "PodDisruptionBudget", "poddisruptionbudgets", kinds.POD_DISRUPTION_BUDGETS),
        core.budgets,
    ),
    ("core", _row("", "Event", "events", kinds.EVENTS), core.events),
]

RESOURCES = {resource.key: resource for _, resource, _ in CREATES}
