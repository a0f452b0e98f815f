"""Table of the resources that the API server serves: one row each. To add a resource, add a row.

Rows are in the order in which discovery lists the groups, which is kube-apiserver's: if two groups offer the same
name (events), the first one is meant.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from podlife.apiserver import printers, strategies
from podlife.apiserver.resource import Printer, Resource
from podlife.apiserver.strategies import SELECTABLE
from podlife.apiserver.strategies.autoscaling import conversion
from podlife.apiserver.strategies.core.events import from_core, to_core
from podlife.apiserver.strategies.strategy import Strategy


def _stored(
    group: str, kind: str, strategy: Strategy, printer: Printer, *short_names: str, **others: Any
) -> Resource:
    """A resource of v1 named as its kind, in lower case and with an `s`, unless `version` and `plural` are given."""
    plural = others.pop("plural", f"{kind.lower()}s")
    version = others.pop("version", "v1")
    selectable = SELECTABLE.get(f"{plural}.{group}" if group else plural, {})
    return Resource(
        group,
        version,
        kind,
        plural,
        strategy=strategy,
        printer=printer,
        selectable=selectable,
        short_names=short_names,
        **others,
    )


def _created(group: str, kind: str, *, namespaced: bool = False) -> Resource:
    """A resource whose objects are answered and never stored."""
    return Resource(group, "v1", kind, f"{kind.lower()}s", namespaced=namespaced, verbs=("create",))


_core = partial(_stored, "")
_apps = partial(_stored, "apps")
_batch = partial(_stored, "batch")
_networking = partial(_stored, "networking.k8s.io")
_rbac = partial(_stored, "rbac.authorization.k8s.io")
_autoscaler = partial(_stored, "autoscaling", "HorizontalPodAutoscaler", strategies.AUTOSCALERS)
_storage = partial(_stored, "storage.k8s.io")
_devices = partial(_stored, "resource.k8s.io")
_flowcontrol = partial(_stored, "flowcontrol.apiserver.k8s.io")
_admission = partial(
    _stored, "admissionregistration.k8s.io", namespaced=False, categories=("api-extensions",)
)
_authentication = partial(_created, "authentication.k8s.io")
_authorization = partial(_created, "authorization.k8s.io")

_STATUS: dict[str, Any] = {"subresources": ("status",)}
_CLUSTER: dict[str, Any] = {"namespaced": False}
_CLUSTER_STATUS: dict[str, Any] = {"namespaced": False, "subresources": ("status",)}
_PROXIED: dict[str, Any] = {"subresources": ("proxy", "status")}
# `kubectl get all` shows the category `all`.
_IN_ALL: dict[str, Any] = {"categories": ("all",), "subresources": ("status",)}
_SCALABLE: dict[str, Any] = {"categories": ("all",), "subresources": ("scale", "status")}

RESOURCES: tuple[Resource, ...] = (
    _created("", "Binding", namespaced=True),
    _core("ConfigMap", strategies.CONFIG_MAPS, printers.CONFIG_MAPS, "cm"),
    _core(
        "Endpoints",
        strategies.ENDPOINTS,
        printers.ENDPOINTS,
        "ep",
        plural="endpoints",
        warning="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    _core("Event", strategies.EVENTS, printers.EVENTS, "ev"),
    _core("LimitRange", strategies.LIMIT_RANGES, printers.PLAIN, "limits"),
    _core(
        "Namespace",
        strategies.NAMESPACES,
        printers.NAMESPACES,
        "ns",
        namespaced=False,
        subresources=("finalize", "status"),
        subresource_strategies={"finalize": strategies.NAMESPACE_FINALIZE},
        # No deletecollection: each must be emptied first.
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _core("Node", strategies.NODES, printers.NODES, "no", namespaced=False, **_PROXIED),
    _core(
        "PersistentVolumeClaim",
        strategies.PERSISTENT_VOLUME_CLAIMS,
        printers.PERSISTENT_VOLUME_CLAIMS,
        "pvc",
        **_STATUS,
    ),
    _core(
        "PersistentVolume",
        strategies.PERSISTENT_VOLUMES,
        printers.PERSISTENT_VOLUMES,
        "pv",
        namespaced=False,
        **_STATUS,
    ),
    _core(
        "Pod",
        strategies.PODS,
        printers.PODS,
        "po",
        categories=("all",),
        subresources=(
            *("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log"),
            *("portforward", "proxy", "resize", "status"),
        ),
        subresource_strategies={
            "ephemeralcontainers": strategies.POD_EPHEMERAL_CONTAINERS,
            "resize": strategies.POD_RESIZE,
        },
    ),
    _core("PodTemplate", strategies.POD_TEMPLATES, printers.POD_TEMPLATES),
    _core(
        "ReplicationController",
        strategies.REPLICATION_CONTROLLERS,
        printers.REPLICATION_CONTROLLERS,
        "rc",
        **_SCALABLE,
    ),
    _core("ResourceQuota", strategies.RESOURCE_QUOTAS, printers.RESOURCE_QUOTAS, "quota", **_STATUS),
    _core("Secret", strategies.SECRETS, printers.SECRETS),
    _core(
        "ServiceAccount",
        strategies.SERVICE_ACCOUNTS,
        printers.SERVICE_ACCOUNTS,
        "sa",
        subresources=("token",),
    ),
    _core("Service", strategies.SERVICES, printers.SERVICES, "svc", categories=("all",), **_PROXIED),
    _stored(
        "apiregistration.k8s.io",
        "APIService",
        strategies.API_SERVICES,
        printers.API_SERVICES,
        categories=("api-extensions",),
        **_CLUSTER_STATUS,
    ),
    _apps("ControllerRevision", strategies.CONTROLLER_REVISIONS, printers.CONTROLLER_REVISIONS),
    _apps("DaemonSet", strategies.DAEMON_SETS, printers.DAEMON_SETS, "ds", **_IN_ALL),
    _apps("Deployment", strategies.DEPLOYMENTS, printers.DEPLOYMENTS, "deploy", **_SCALABLE),
    _apps("ReplicaSet", strategies.REPLICA_SETS, printers.REPLICA_SETS, "rs", **_SCALABLE),
    _apps("StatefulSet", strategies.STATEFUL_SETS, printers.STATEFUL_SETS, "sts", **_SCALABLE),
    _stored(
        "events.k8s.io",
        "Event",
        strategies.EVENTS_V1,
        printers.EVENTS,
        "ev",
        stored_as="events",
        from_stored=from_core,
        to_stored=to_core,
    ),
    _authentication("SelfSubjectReview"),
    _authentication("TokenReview"),
    _authorization("LocalSubjectAccessReview", namespaced=True),
    _authorization("SelfSubjectAccessReview"),
    _authorization("SelfSubjectRulesReview"),
    _authorization("SubjectAccessReview"),
    _autoscaler(printers.AUTOSCALERS, "hpa", version="v2", check=strategies.check_autoscaler, **_IN_ALL),
    _autoscaler(
        replace(
            printers.AUTOSCALERS,
            cells=lambda obj, now: printers.AUTOSCALERS.cells(conversion.from_v1(obj), now),
        ),
        "hpa",
        stored_as="horizontalpodautoscalers.autoscaling",
        from_stored=conversion.to_v1,
        to_stored=conversion.from_v1,
        **_IN_ALL,
    ),
    _batch("CronJob", strategies.CRON_JOBS, printers.CRON_JOBS, "cj", **_IN_ALL),
    _batch("Job", strategies.JOBS, printers.JOBS, **_IN_ALL),
    _stored(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        strategies.CERTIFICATE_SIGNING_REQUESTS,
        printers.CERTIFICATE_SIGNING_REQUESTS,
        "csr",
        namespaced=False,
        subresources=("approval", "status"),
        subresource_strategies={"approval": strategies.CERTIFICATE_APPROVAL},
    ),
    _networking(
        "IngressClass",
        strategies.INGRESS_CLASSES,
        printers.INGRESS_CLASSES,
        plural="ingressclasses",
        **_CLUSTER,
    ),
    _networking("Ingress", strategies.INGRESSES, printers.INGRESSES, "ing", plural="ingresses", **_STATUS),
    _networking(
        "IPAddress", strategies.IP_ADDRESSES, printers.IP_ADDRESSES, "ip", plural="ipaddresses", **_CLUSTER
    ),
    _networking(
        "NetworkPolicy",
        strategies.NETWORK_POLICIES,
        printers.NETWORK_POLICIES,
        "netpol",
        plural="networkpolicies",
    ),
    _networking("ServiceCIDR", strategies.SERVICE_CIDRS, printers.SERVICE_CIDRS, **_CLUSTER_STATUS),
    _stored(
        "policy",
        "PodDisruptionBudget",
        strategies.POD_DISRUPTION_BUDGETS,
        printers.POD_DISRUPTION_BUDGETS,
        "pdb",
        **_STATUS,
    ),
    _rbac("ClusterRoleBinding", strategies.CLUSTER_ROLE_BINDINGS, printers.CLUSTER_ROLE_BINDINGS, **_CLUSTER),
    _rbac("ClusterRole", strategies.CLUSTER_ROLES, printers.PLAIN, **_CLUSTER),
    _rbac("RoleBinding", strategies.ROLE_BINDINGS, printers.ROLE_BINDINGS),
    _rbac("Role", strategies.ROLES, printers.PLAIN),
    _storage("CSIDriver", strategies.CSI_DRIVERS, printers.CSI_DRIVERS, **_CLUSTER),
    _storage("CSINode", strategies.CSI_NODES, printers.CSI_NODES, **_CLUSTER),
    _storage(
        "CSIStorageCapacity",
        strategies.CSI_STORAGE_CAPACITIES,
        printers.PLAIN,
        plural="csistoragecapacities",
    ),
    _storage(
        "StorageClass",
        strategies.STORAGE_CLASSES,
        printers.STORAGE_CLASSES,
        "sc",
        plural="storageclasses",
        **_CLUSTER,
    ),
    _storage(
        "VolumeAttachment", strategies.VOLUME_ATTACHMENTS, printers.VOLUME_ATTACHMENTS, **_CLUSTER_STATUS
    ),
    _storage(
        "VolumeAttributesClass",
        strategies.VOLUME_ATTRIBUTES_CLASSES,
        printers.VOLUME_ATTRIBUTES_CLASSES,
        "vac",
        plural="volumeattributesclasses",
        **_CLUSTER,
    ),
    _admission(
        "MutatingAdmissionPolicy",
        strategies.MUTATING_POLICIES,
        printers.MUTATING_POLICIES,
        plural="mutatingadmissionpolicies",
    ),
    _admission(
        "MutatingAdmissionPolicyBinding",
        strategies.MUTATING_POLICY_BINDINGS,
        printers.MUTATING_POLICY_BINDINGS,
    ),
    _admission("MutatingWebhookConfiguration", strategies.MUTATING_WEBHOOKS, printers.MUTATING_WEBHOOKS),
    _admission(
        "ValidatingAdmissionPolicy",
        strategies.VALIDATING_POLICIES,
        printers.VALIDATING_POLICIES,
        plural="validatingadmissionpolicies",
        **_STATUS,
    ),
    _admission(
        "ValidatingAdmissionPolicyBinding",
        strategies.VALIDATING_POLICY_BINDINGS,
        printers.VALIDATING_POLICY_BINDINGS,
    ),
    _admission(
        "ValidatingWebhookConfiguration", strategies.VALIDATING_WEBHOOKS, printers.VALIDATING_WEBHOOKS
    ),
    _stored(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        strategies.CUSTOM_RESOURCE_DEFINITIONS,
        printers.PLAIN,
        "crd",
        "crds",
        namespaced=False,
        categories=("api-extensions",),
        check=strategies.check_definition,
        **_STATUS,
    ),
    _stored(
        "scheduling.k8s.io",
        "PriorityClass",
        strategies.PRIORITY_CLASSES,
        printers.PRIORITY_CLASSES,
        "pc",
        plural="priorityclasses",
        **_CLUSTER,
    ),
    _stored("coordination.k8s.io", "Lease", strategies.LEASES, printers.LEASES),
    _stored(
        "node.k8s.io",
        "RuntimeClass",
        strategies.RUNTIME_CLASSES,
        printers.RUNTIME_CLASSES,
        plural="runtimeclasses",
        **_CLUSTER,
    ),
    _stored("discovery.k8s.io", "EndpointSlice", strategies.ENDPOINT_SLICES, printers.ENDPOINT_SLICES),
    _devices(
        "DeviceClass", strategies.DEVICE_CLASSES, printers.DEVICE_CLASSES, plural="deviceclasses", **_CLUSTER
    ),
    _devices("ResourceClaim", strategies.RESOURCE_CLAIMS, printers.RESOURCE_CLAIMS, **_STATUS),
    _devices("ResourceClaimTemplate", strategies.RESOURCE_CLAIM_TEMPLATES, printers.RESOURCE_CLAIM_TEMPLATES),
    _devices("ResourceSlice", strategies.RESOURCE_SLICES, printers.RESOURCE_SLICES, **_CLUSTER),
    _flowcontrol("FlowSchema", strategies.FLOW_SCHEMAS, printers.FLOW_SCHEMAS, **_CLUSTER_STATUS),
    _flowcontrol(
        "PriorityLevelConfiguration",
        strategies.PRIORITY_LEVEL_CONFIGURATIONS,
        printers.PRIORITY_LEVEL_CONFIGURATIONS,
        **_CLUSTER_STATUS,
    ),
)

STORED: tuple[Resource, ...] = tuple(row for row in RESOURCES if "list" in row.verbs)
"""Rows whose objects are stored."""
