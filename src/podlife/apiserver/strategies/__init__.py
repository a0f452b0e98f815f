"""Strategies: each kind's defaults, validation, and what an update may change.

One singleton per resource, named after it; subresources that write something other than the status have their own. A
strategy holds no state, so they can be shared.
"""

from __future__ import annotations

from podlife.apiserver.strategies.admissionregistration.policies import (
    AdmissionPolicyStrategy,
    PolicyBindingStrategy,
)
from podlife.apiserver.strategies.admissionregistration.webhooks import WebhookConfigurationStrategy
from podlife.apiserver.strategies.apiextensions.definitions import (
    CustomResourceDefinitionStrategy,
    check_definition,
)
from podlife.apiserver.strategies.apiregistration import APIServiceStrategy
from podlife.apiserver.strategies.apps.daemonsets import DaemonSetStrategy
from podlife.apiserver.strategies.apps.replicasets import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from podlife.apiserver.strategies.apps.statefulsets import ControllerRevisionStrategy, StatefulSetStrategy
from podlife.apiserver.strategies.autoscaling.autoscalers import (
    HorizontalPodAutoscalerStrategy,
    check_autoscaler,
)
from podlife.apiserver.strategies.batch.cronjobs import CronJobStrategy
from podlife.apiserver.strategies.batch.jobs import JobStrategy
from podlife.apiserver.strategies.certificates import ApprovalStrategy, CertificateSigningRequestStrategy
from podlife.apiserver.strategies.core.configmaps_secrets import (
    ConfigMapStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from podlife.apiserver.strategies.core.events import EventStrategy, EventsV1Strategy
from podlife.apiserver.strategies.core.namespaces import NamespaceFinalizeStrategy, NamespaceStrategy
from podlife.apiserver.strategies.core.nodes import LeaseStrategy, NodeStrategy
from podlife.apiserver.strategies.core.persistent_volumes import (
    PersistentVolumeClaimStrategy,
    PersistentVolumeStrategy,
)
from podlife.apiserver.strategies.core.pod.strategy import (
    EphemeralContainersStrategy,
    PodDisruptionBudgetStrategy,
    PodStrategy,
    ResizeStrategy,
)
from podlife.apiserver.strategies.core.pod.template import PodTemplateStrategy
from podlife.apiserver.strategies.core.quotas import LimitRangeStrategy, ResourceQuotaStrategy
from podlife.apiserver.strategies.core.services import (
    EndpointsStrategy,
    ServiceStrategy,
    assign_cluster_ip,
    needs_cluster_ip,
)
from podlife.apiserver.strategies.devices.claims import ResourceClaimStrategy, ResourceClaimTemplateStrategy
from podlife.apiserver.strategies.devices.classes import DeviceClassStrategy
from podlife.apiserver.strategies.devices.slices import ResourceSliceStrategy
from podlife.apiserver.strategies.endpoint_slices import EndpointSliceStrategy
from podlife.apiserver.strategies.flowcontrol.flow_schemas import FlowSchemaStrategy
from podlife.apiserver.strategies.flowcontrol.priority_levels import PriorityLevelStrategy
from podlife.apiserver.strategies.network_policies import (
    IPAddressStrategy,
    NetworkPolicyStrategy,
    ServiceCIDRStrategy,
)
from podlife.apiserver.strategies.networking import IngressClassStrategy, IngressStrategy
from podlife.apiserver.strategies.pod_classes import PriorityClassStrategy, RuntimeClassStrategy
from podlife.apiserver.strategies.rbac import RoleBindingStrategy, RoleStrategy
from podlife.apiserver.strategies.selectable_fields import SELECTABLE
from podlife.apiserver.strategies.storage import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
    StorageClassStrategy,
    VolumeAttachmentStrategy,
    VolumeAttributesClassStrategy,
)

__all__ = [
    "API_SERVICES",
    "AUTOSCALERS",
    "CERTIFICATE_APPROVAL",
    "CERTIFICATE_SIGNING_REQUESTS",
    "CLUSTER_ROLES",
    "CLUSTER_ROLE_BINDINGS",
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "CRON_JOBS",
    "CSI_NODES",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "DEVICE_CLASSES",
    "ENDPOINTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "EVENTS_V1",
    "FLOW_SCHEMAS",
    "INGRESSES",
    "INGRESS_CLASSES",
    "IP_ADDRESSES",
    "JOBS",
    "LEASES",
    "LIMIT_RANGES",
    "MUTATING_POLICIES",
    "MUTATING_POLICY_BINDINGS",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "NAMESPACE_FINALIZE",
    "NETWORK_POLICIES",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "POD_EPHEMERAL_CONTAINERS",
    "POD_RESIZE",
    "POD_TEMPLATES",
    "PRIORITY_CLASSES",
    "PRIORITY_LEVEL_CONFIGURATIONS",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_QUOTAS",
    "RESOURCE_SLICES",
    "ROLES",
    "ROLE_BINDINGS",
    "RUNTIME_CLASSES",
    "SECRETS",
    "SELECTABLE",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "SERVICE_CIDRS",
    "STATEFUL_SETS",
    "VALIDATING_POLICIES",
    "VALIDATING_POLICY_BINDINGS",
    "VALIDATING_WEBHOOKS",
    "assign_cluster_ip",
    "check_autoscaler",
    "check_definition",
    "needs_cluster_ip",
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
PERSISTENT_VOLUME_CLAIMS = PersistentVolumeClaimStrategy()
REPLICATION_CONTROLLERS = ReplicationControllerStrategy()
DEPLOYMENTS = DeploymentStrategy()
REPLICA_SETS = ReplicaSetStrategy()
STATEFUL_SETS = StatefulSetStrategy()
DAEMON_SETS = DaemonSetStrategy()
CONTROLLER_REVISIONS = ControllerRevisionStrategy()
JOBS = JobStrategy()
CRON_JOBS = CronJobStrategy()
LEASES = LeaseStrategy()
LIMIT_RANGES = LimitRangeStrategy()
RESOURCE_QUOTAS = ResourceQuotaStrategy()
CUSTOM_RESOURCE_DEFINITIONS = CustomResourceDefinitionStrategy()
POD_DISRUPTION_BUDGETS = PodDisruptionBudgetStrategy()
FLOW_SCHEMAS = FlowSchemaStrategy()
PRIORITY_LEVEL_CONFIGURATIONS = PriorityLevelStrategy()
POD_TEMPLATES = PodTemplateStrategy()
CLUSTER_ROLES = RoleStrategy(namespaced=False)
CLUSTER_ROLE_BINDINGS = RoleBindingStrategy(namespaced=False)
ROLES = RoleStrategy(namespaced=True)
ROLE_BINDINGS = RoleBindingStrategy(namespaced=True)
ENDPOINT_SLICES = EndpointSliceStrategy()
MUTATING_WEBHOOKS = WebhookConfigurationStrategy(is_mutating=True)
VALIDATING_WEBHOOKS = WebhookConfigurationStrategy(is_mutating=False)
MUTATING_POLICIES = AdmissionPolicyStrategy(is_mutating=True)
MUTATING_POLICY_BINDINGS = PolicyBindingStrategy(is_mutating=True)
VALIDATING_POLICIES = AdmissionPolicyStrategy(is_mutating=False)
VALIDATING_POLICY_BINDINGS = PolicyBindingStrategy(is_mutating=False)
API_SERVICES = APIServiceStrategy()
AUTOSCALERS = HorizontalPodAutoscalerStrategy()
CERTIFICATE_SIGNING_REQUESTS = CertificateSigningRequestStrategy()
CERTIFICATE_APPROVAL = ApprovalStrategy()
CSI_DRIVERS = CSIDriverStrategy()
CSI_NODES = CSINodeStrategy()
CSI_STORAGE_CAPACITIES = CSIStorageCapacityStrategy()
STORAGE_CLASSES = StorageClassStrategy()
VOLUME_ATTACHMENTS = VolumeAttachmentStrategy()
VOLUME_ATTRIBUTES_CLASSES = VolumeAttributesClassStrategy()
INGRESSES = IngressStrategy()
INGRESS_CLASSES = IngressClassStrategy()
IP_ADDRESSES = IPAddressStrategy()
NETWORK_POLICIES = NetworkPolicyStrategy()
SERVICE_CIDRS = ServiceCIDRStrategy()
PRIORITY_CLASSES = PriorityClassStrategy()
RUNTIME_CLASSES = RuntimeClassStrategy()
DEVICE_CLASSES = DeviceClassStrategy()
RESOURCE_CLAIMS = ResourceClaimStrategy()
RESOURCE_CLAIM_TEMPLATES = ResourceClaimTemplateStrategy()
RESOURCE_SLICES = ResourceSliceStrategy()
