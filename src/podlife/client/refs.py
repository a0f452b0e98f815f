"""Resources: group, version and plural name, and the URL path that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

# Names with a special meaning in a path.
_DOTS = (".", "..")


@dataclass(frozen=True, slots=True)
class Ref:
    """A resource of an API server. `kind` is for new objects; requests do not need it."""

    group: str
    version: str
    plural: str
    namespaced: bool = True
    kind: str = ""

    @classmethod
    def of(cls, view: type) -> Ref:
        """The resource of a class with the decorator `podlife.api.crd.CustomResource`. Raises ConfigError."""
        from podlife.api.crd import resource_of

        found = resource_of(view)
        return cls(found.group, found.version, found.plural, found.scope == "Namespaced", found.kind)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection or, with a name, of one object; without a namespace, of all of them.

        Raises ValueError for a namespaced object without a namespace, and for invalid names."""
        if namespace and not self.namespaced:
            raise ValueError(f"{self.plural} are cluster-scoped, but namespace {namespace!r} was given")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural} {name!r} requires a namespace")
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root, *(("namespaces", namespace) if namespace else ()), self.plural]
        parts += [part for part in (name, subresource) if part]
        both = f"{namespace} {name}"
        if "/" in both or "%" in both or namespace in _DOTS or name in _DOTS:
            raise ValueError(f"invalid namespace {namespace!r} or name {name!r} for a path")
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def with_view(resource: Ref | type[T], view: type[T] | None) -> tuple[Ref, type[T]]:
    """A resource and the view of its objects; the class of a custom resource is both."""
    if isinstance(resource, Ref):
        if view is None:
            raise TypeError(f"{resource} requires a view")
        return resource, view
    return Ref.of(resource), view or resource


CONFIG_MAPS = Ref("", "v1", "configmaps", kind="ConfigMap")
ENDPOINTS = Ref("", "v1", "endpoints", kind="Endpoints")
EVENTS = Ref("", "v1", "events", kind="Event")
NAMESPACES = Ref("", "v1", "namespaces", namespaced=False, kind="Namespace")
NODES = Ref("", "v1", "nodes", namespaced=False, kind="Node")
PERSISTENT_VOLUMES = Ref("", "v1", "persistentvolumes", namespaced=False, kind="PersistentVolume")
PERSISTENT_VOLUME_CLAIMS = Ref("", "v1", "persistentvolumeclaims", kind="PersistentVolumeClaim")
PODS = Ref("", "v1", "pods", kind="Pod")
REPLICATION_CONTROLLERS = Ref("", "v1", "replicationcontrollers", kind="ReplicationController")
SECRETS = Ref("", "v1", "secrets", kind="Secret")
SERVICES = Ref("", "v1", "services", kind="Service")
SERVICE_ACCOUNTS = Ref("", "v1", "serviceaccounts", kind="ServiceAccount")

CONTROLLER_REVISIONS = Ref("apps", "v1", "controllerrevisions", kind="ControllerRevision")
DAEMON_SETS = Ref("apps", "v1", "daemonsets", kind="DaemonSet")
DEPLOYMENTS = Ref("apps", "v1", "deployments", kind="Deployment")
REPLICA_SETS = Ref("apps", "v1", "replicasets", kind="ReplicaSet")
STATEFUL_SETS = Ref("apps", "v1", "statefulsets", kind="StatefulSet")
CRON_JOBS = Ref("batch", "v1", "cronjobs", kind="CronJob")
JOBS = Ref("batch", "v1", "jobs", kind="Job")
ENDPOINT_SLICES = Ref("discovery.k8s.io", "v1", "endpointslices", kind="EndpointSlice")
CUSTOM_RESOURCE_DEFINITIONS = Ref(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    namespaced=False,
    kind="CustomResourceDefinition",
)
LEASES = Ref("coordination.k8s.io", "v1", "leases", kind="Lease")
POD_DISRUPTION_BUDGETS = Ref("policy", "v1", "poddisruptionbudgets", kind="PodDisruptionBudget")
STORAGE_CLASSES = Ref("storage.k8s.io", "v1", "storageclasses", namespaced=False, kind="StorageClass")
VOLUME_ATTRIBUTES_CLASSES = Ref(
    "storage.k8s.io", "v1", "volumeattributesclasses", namespaced=False, kind="VolumeAttributesClass"
)
