"""How `kubectl get` shows each resource: the cells that v1.36's API server prints, one file per family.

The columns are recorded from kube-apiserver (`columns.json`); a printer only computes the cells. Objects have passed
the schema check, so their fields have the right types; any of them may be absent.
"""

from __future__ import annotations

from podlife.apiserver.printers.admissionregistration import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
)
from podlife.apiserver.printers.autoscaling import AUTOSCALERS
from podlife.apiserver.printers.cells import PLAIN
from podlife.apiserver.printers.cluster import (
    API_SERVICES,
    CERTIFICATE_SIGNING_REQUESTS,
    CSI_DRIVERS,
    CSI_NODES,
    DEVICE_CLASSES,
    INGRESS_CLASSES,
    INGRESSES,
    IP_ADDRESSES,
    NETWORK_POLICIES,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RUNTIME_CLASSES,
    SERVICE_CIDRS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_ATTRIBUTES_CLASSES,
)
from podlife.apiserver.printers.core import (
    CONFIG_MAPS,
    ENDPOINTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from podlife.apiserver.printers.endpoint_slices import ENDPOINT_SLICES
from podlife.apiserver.printers.flowcontrol import FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS
from podlife.apiserver.printers.pods import POD_DISRUPTION_BUDGETS, PODS
from podlife.apiserver.printers.rbac import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from podlife.apiserver.printers.workloads import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    POD_TEMPLATES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)

__all__ = [
    "API_SERVICES",
    "AUTOSCALERS",
    "CERTIFICATE_SIGNING_REQUESTS",
    "CLUSTER_ROLE_BINDINGS",
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "CSI_DRIVERS",
    "CSI_NODES",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "DEVICE_CLASSES",
    "ENDPOINTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "FLOW_SCHEMAS",
    "INGRESSES",
    "INGRESS_CLASSES",
    "IP_ADDRESSES",
    "JOBS",
    "LEASES",
    "MUTATING_POLICIES",
    "MUTATING_POLICY_BINDINGS",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "NETWORK_POLICIES",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PLAIN",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "POD_TEMPLATES",
    "PRIORITY_CLASSES",
    "PRIORITY_LEVEL_CONFIGURATIONS",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_QUOTAS",
    "RESOURCE_SLICES",
    "ROLE_BINDINGS",
    "RUNTIME_CLASSES",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "SERVICE_CIDRS",
    "STATEFUL_SETS",
    "STORAGE_CLASSES",
    "VALIDATING_POLICIES",
    "VALIDATING_POLICY_BINDINGS",
    "VALIDATING_WEBHOOKS",
    "VOLUME_ATTACHMENTS",
    "VOLUME_ATTRIBUTES_CLASSES",
]
