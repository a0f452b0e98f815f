"""How `kubectl get` shows each resource: the cells that v1.36's API server prints, one file per family.

The columns are recorded from kube-apiserver (`columns.json`); a printer only computes the cells. Objects have passed
the schema check, so their fields have the right types; any of them may be absent.
"""

from __future__ import annotations

from podlife.apiserver.printers.cells import PLAIN
from podlife.apiserver.printers.core import (
    CONFIG_MAPS,
    ENDPOINTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from podlife.apiserver.printers.pods import POD_DISRUPTION_BUDGETS, PODS
from podlife.apiserver.printers.workloads import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)

__all__ = [
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINTS",
    "EVENTS",
    "JOBS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PLAIN",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STATEFUL_SETS",
]
