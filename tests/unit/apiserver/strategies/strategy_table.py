"""Which cases belong to which resource and to which file of recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podlife.apiserver import resource_table
from podlife.apiserver.resource import Resource
from tests.unit.apiserver.strategies import cases_core as core
from tests.unit.apiserver.strategies import cases_pods as pods
from tests.unit.apiserver.strategies import cases_workloads as workloads

Cases = Callable[[], Iterator[pods.Case]]

RESOURCES = {resource.key: resource for resource in resource_table.RESOURCES}
_CASES: dict[str, dict[str, Cases]] = {
    "pods": {"pods": pods.cases},
    "workloads": {
        "deployments.apps": workloads.deployments,
        "replicasets.apps": workloads.replica_sets,
        "daemonsets.apps": workloads.daemon_sets,
        "statefulsets.apps": workloads.stateful_sets,
        "replicationcontrollers": workloads.replication_controllers,
        "jobs.batch": workloads.jobs,
        "cronjobs.batch": workloads.cron_jobs,
        "controllerrevisions.apps": workloads.revisions,
    },
    "core": {
        "namespaces": core.namespaces,
        "nodes": core.nodes,
        "configmaps": core.config_maps,
        "secrets": core.secrets,
        "serviceaccounts": core.service_accounts,
        "services": core.services,
        "endpoints": core.endpoints,
        "persistentvolumeclaims": core.claims,
        "persistentvolumes": core.volumes,
        "leases.coordination.k8s.io": core.leases,
        "poddisruptionbudgets.policy": core.budgets,
        "events": core.events,
    },
}
CREATES: list[tuple[str, Resource, Cases]] = [
    (file, RESOURCES[key], cases) for file, by_key in _CASES.items() for key, cases in by_key.items()
]
