"""What each kind answers to the verbs' questions: defaults, validation, what an update may change.

One singleton per resource, named after it; subresources that write something else than the status have one
of their own. A strategy holds no state, so they can be shared.
"""

from __future__ import annotations

from podlife.apiserver.strategies.claims import ClaimStrategy
from podlife.apiserver.strategies.config import ConfigMapStrategy, SecretStrategy, ServiceAccountStrategy
from podlife.apiserver.strategies.coordination import DisruptionBudgetStrategy, LeaseStrategy
from podlife.apiserver.strategies.cronjobs import CronJobStrategy
from podlife.apiserver.strategies.daemonsets import DaemonSetStrategy
from podlife.apiserver.strategies.endpoints import EndpointsStrategy
from podlife.apiserver.strategies.events import EventStrategy, EventsV1Strategy
from podlife.apiserver.strategies.jobs import JobStrategy
from podlife.apiserver.strategies.metadata import (
    default_metadata,
    validate_metadata,
    validate_metadata_update,
)
from podlife.apiserver.strategies.namespaces import NamespaceFinalizeStrategy, NamespaceStrategy
from podlife.apiserver.strategies.nodes import NodeStrategy
from podlife.apiserver.strategies.persistent_volumes import PersistentVolumeStrategy
from podlife.apiserver.strategies.pods import EphemeralContainersStrategy, PodStrategy, ResizeStrategy
from podlife.apiserver.strategies.replicated import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from podlife.apiserver.strategies.selectable import SELECTABLE
from podlife.apiserver.strategies.services import (
    ServiceStrategy,
    assign_cluster_ip,
    needs_cluster_ip,
)
from podlife.apiserver.strategies.statefulsets import ControllerRevisionStrategy, StatefulSetStrategy

__all__ = [
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINTS",
    "EVENTS",
    "EVENTS_V1",
    "JOBS",
    "LEASES",
    "NAMESPACES",
    "NAMESPACE_FINALIZE",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "POD_EPHEMERAL_CONTAINERS",
    "POD_RESIZE",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "SECRETS",
    "SELECTABLE",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "STATEFUL_SETS",
    "assign_cluster_ip",
    "default_metadata",
    "needs_cluster_ip",
    "validate_metadata",
    "validate_metadata_update",
]

PODS = PodStrategy()
POD_EPHEMERAL_CONTAINERS = EphemeralContainersStrategy()
POD_RESIZE = ResizeStrategy()
NAMESPACES = NamespaceStrategy()
NAMESPACE_FINALIZE = NamespaceFinalizeStrategy()
NODES = NodeStrategy()
EVENTS = EventStrategy()
EVENTS_V1 = EventsV1Strategy()
CONFIG_MAPS = ConfigMapStrategy()
SECRETS = SecretStrategy()
SERVICE_ACCOUNTS = ServiceAccountStrategy()
SERVICES = ServiceStrategy()
ENDPOINTS = EndpointsStrategy()
PERSISTENT_VOLUMES = PersistentVolumeStrategy()
PERSISTENT_VOLUME_CLAIMS = ClaimStrategy()
REPLICATION_CONTROLLERS = ReplicationControllerStrategy()
DEPLOYMENTS = DeploymentStrategy()
REPLICA_SETS = ReplicaSetStrategy()
STATEFUL_SETS = StatefulSetStrategy()
DAEMON_SETS = DaemonSetStrategy()
CONTROLLER_REVISIONS = ControllerRevisionStrategy()
JOBS = JobStrategy()
CRON_JOBS = CronJobStrategy()
LEASES = LeaseStrategy()
POD_DISRUPTION_BUDGETS = DisruptionBudgetStrategy()
