"""The catalogue of controllers: names, descriptions, factories and metrics exporters.

A controller is imported when it is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from podlife.errors import ConfigError
from podlife.workloads import CONTROLLERS

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from podlife.controller import ControlPlane, Runnable

OWNER_GC = "garbage-collector-controller"
POD_GC = "pod-garbage-collector-controller"
SCHEDULER = "scheduler"
NODE_LIFECYCLE = "node-lifecycle-controller"
TAINT_EVICTION = "taint-eviction-controller"
OUT_OF_SERVICE = "out-of-service"
ENDPOINTS = "endpoints-controller"
ENDPOINT_SLICES = "endpointslice-controller"
ENDPOINT_MIRRORING = "endpointslice-mirroring-controller"
SERVICE_ACCOUNT = "serviceaccount-controller"
RESOURCE_QUOTA = "resourcequota-controller"
TOKENS_CONTROLLER = "serviceaccount-token-controller"
ROOT_CA_PUBLISHER = "root-ca-certificate-publisher-controller"
CSR_APPROVING = "certificatesigningrequest-approving-controller"
CSR_SIGNING = "certificatesigningrequest-signing-controller"
CSR_CLEANER = "certificatesigningrequest-cleaner-controller"
VOLUME_BINDER = "persistentvolume-binder-controller"
VOLUME_PROTECTION = "persistentvolume-protection-controller"
CLAIM_PROTECTION = "persistentvolumeclaim-protection-controller"
ATTRIBUTES_PROTECTION = "volumeattributesclass-protection-controller"
EPHEMERAL_VOLUME = "ephemeral-volume-controller"
LOCAL_PATH = "local-path-provisioner"

_ABOUT = {
    "cronjob-controller": "Jobs by a schedule, and how many finished ones are kept",
    "replicaset-controller": "maintains the number of replicas of a pod template",
    "replicationcontroller-controller": "the same for ReplicationControllers, the older kind",
    "statefulset-controller": "pods with stable names, an order and their own volumes",
    "job-controller": "pods that run to completion, counted exactly",
    "ttl-after-finished-controller": "deletes finished Jobs after their time to live",
    "daemonset-controller": "one pod on every matching node",
    "deployment-controller": "rollouts: successive ReplicaSets, their history and progress deadline",
    "disruption-controller": "status of PodDisruptionBudgets, which evictions and `kubectl drain` need",
    OWNER_GC: "deletes or orphans dependents of deleted owners: background, foreground, orphan",
    SCHEDULER: "assigns pods to nodes; only if named, since clusters usually have one",
    POD_GC: "removes pods that no other controller removes; the same as `podlife gc run`",
    NODE_LIFECYCLE: "marks unresponsive nodes as not ready and taints them, zone by zone",
    TAINT_EVICTION: "evicts pods from nodes with NoExecute taints that they do not tolerate",
    ENDPOINT_SLICES: "EndpointSlices: the addresses of the pods that Services select",
    ENDPOINTS: "the same as Endpoints, the older kind",
    ENDPOINT_MIRRORING: "EndpointSlices of the Endpoints that users write for Services without a selector",
    SERVICE_ACCOUNT: "a service account `default` in every namespace",
    TOKENS_CONTROLLER: "tokens in secrets; needs --service-account-private-key-file",
    ROOT_CA_PUBLISHER: "a ConfigMap `kube-root-ca.crt` with the API server's CA in every namespace",
    RESOURCE_QUOTA: "what ResourceQuotas limit and how much of it is used",
    CSR_APPROVING: "approves requests of kubelets for client certificates",
    CSR_SIGNING: "signs approved certificate requests, with the CA of --cluster-signing-cert-file",
    CSR_CLEANER: "removes old certificate requests",
    VOLUME_BINDER: "binds PersistentVolumeClaims and PersistentVolumes to each other",
    VOLUME_PROTECTION: "keeps PersistentVolumes that are deleted while bound",
    CLAIM_PROTECTION: "keeps PersistentVolumeClaims that are deleted while a pod uses them",
    ATTRIBUTES_PROTECTION: "keeps VolumeAttributesClasses that are deleted while in use",
    EPHEMERAL_VOLUME: "claims of pods' generic ephemeral volumes",
    LOCAL_PATH: "volumes that are directories of nodes on this machine; only if named",
    OUT_OF_SERVICE: "releases pods and volumes of nodes that are confirmed dead; only if named",
}
# Names from before kube-controller-manager 1.28, which it still accepts, if not the short name.
_OLDER = {
    OWNER_GC: ("garbagecollector",),
    POD_GC: ("podgc",),
    NODE_LIFECYCLE: ("nodelifecycle",),
    ENDPOINTS: ("endpoint",),
    ENDPOINT_MIRRORING: ("endpointslicemirroring",),
    ROOT_CA_PUBLISHER: ("root-ca-cert-publisher",),
    CSR_APPROVING: ("csrapproving",),
    CSR_SIGNING: ("csrsigning",),
    CSR_CLEANER: ("csrcleaner",),
    VOLUME_PROTECTION: ("pv-protection",),
    CLAIM_PROTECTION: ("pvc-protection",),
    # Not upstream: other spellings that users try.
    OUT_OF_SERVICE: ("outofservice", f"{OUT_OF_SERVICE}-controller"),
}
# Names for groups of controllers.
_TOGETHER = {"nodehealth": (NODE_LIFECYCLE, TAINT_EVICTION)}
# Controllers of kube-controller-manager v1.36 that podlife does not have, for a better message than "unknown".
_NOT_HERE = frozenset(
    f"{name}-controller"
    for name in (
        *("bootstrap-signer", "cloud-node-lifecycle", "clusterrole-aggregation"),
        *("device-taint-eviction", "horizontal-pod-autoscaler"),
        "kube-apiserver-serving-clustertrustbundle-publisher",
        *("legacy-serviceaccount-token-cleaner", "namespace", "node-ipam", "node-route"),
        *("persistentvolume-attach-detach", "persistentvolume-expander", "podcertificaterequest-cleaner"),
        *("podgroup-protection", "resourceclaim", "resourcepoolstatusrequest"),
        *("selinux-warning", "service-cidr", "service-lb", "storage-version-migrator"),
        *("storageversion-garbage-collector", "token-cleaner", "ttl"),
        "validatingadmissionpolicy-status",
    )
)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """`make` takes a control plane and the controller's options; `export` registers its additional metrics."""

    name: str
    make: Callable[..., Runnable]
    # Whether `*` includes it.
    is_usual: bool = True
    export: Callable[[CollectorRegistry, Any], None] | None = None

    @property
    def short(self) -> str:
        return self.name.removesuffix("-controller")

    @property
    def about(self) -> str:
        return _ABOUT.get(self.name, "")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.short, *_OLDER.get(self.name, ()))


def known_controllers() -> tuple[CatalogEntry, ...]:
    """In the order in which they are listed and started."""
    workloads = tuple(CatalogEntry(name, make) for name, make in CONTROLLERS.items())
    return (*workloads, *_OTHERS)


def choose(words: Iterable[str]) -> tuple[CatalogEntry, ...]:
    """The controllers selected by names, `*` and `-name`. Raises ConfigError for an unknown name, for one that is both
    included and excluded, and when nothing is left."""
    known = known_controllers()
    by_name = {name: (each.name,) for each in known for name in each.names} | _TOGETHER
    wanted: set[str] = set()
    unwanted: set[str] = set()
    is_all = False
    for word in words:
        if word == "*":
            is_all = True
            continue
        name = word.removeprefix("-")
        if name not in by_name:
            raise ConfigError(_unknown(name, by_name))
        (unwanted if word.startswith("-") else wanted).update(by_name[name])
    if both := sorted(wanted & unwanted):
        raise ConfigError(f"--controllers both includes and excludes {both[0]}")
    chosen = tuple(
        each
        for each in known
        if each.name in wanted or (is_all and each.is_usual and each.name not in unwanted)
    )
    if not chosen and not unwanted:
        raise ConfigError("--controllers is empty: `podlife controllers list` shows all controllers")
    if not chosen:
        rest = ",".join(f"-{name}" for name in sorted(unwanted))
        raise ConfigError(f"--controllers leaves nothing to run: for all the others write '*,{rest}'")
    return chosen


def _unknown(name: str, known: Iterable[str]) -> str:
    if f"{name.removesuffix('-controller')}-controller" in _NOT_HERE:
        return (
            f"--controllers: podlife does not have kube-controller-manager's {name}; `podlife controllers list` "
            "shows all controllers"
        )
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown --controllers value {name!r}: {meant}`podlife controllers list` shows all controllers"


def _made_by(module: str, name: str, **defaults: Any) -> Callable[..., Runnable]:
    def make(plane: ControlPlane, **options: Any) -> Runnable:
        controller: Runnable = getattr(import_module(module), name)(plane, **defaults | options)
        return controller

    return make


def _make_pod_gc(plane: ControlPlane, **options: Any) -> Runnable:
    """With its own caches, since it needs fewer fields of a pod than the other controllers."""
    from podlife.daemons.gc import PodGarbageCollector
    from podlife.podgc import Settings

    recorder = plane.recorder("podlife-gc")
    return PodGarbageCollector(plane.client, Settings(**options), plane.clock, recorder)


def _exported_by(module: str, name: str) -> Callable[[CollectorRegistry, Any], None]:
    def export(registry: CollectorRegistry, controller: Any) -> None:
        getattr(import_module(module), name)(registry, controller.metrics)

    return export


_NODEHEALTH = "podlife.nodehealth"
_OTHERS = (
    CatalogEntry(OWNER_GC, _made_by("podlife.ownergc", "OwnerGarbageCollector")),
    CatalogEntry(POD_GC, _make_pod_gc, export=lambda registry, controller: controller.export_own(registry)),
    CatalogEntry(
        NODE_LIFECYCLE,
        _made_by(_NODEHEALTH, "NodeLifecycleController"),
        export=_exported_by(f"{_NODEHEALTH}.prometheus", "export_node_lifecycle"),
    ),
    CatalogEntry(
        TAINT_EVICTION,
        _made_by(_NODEHEALTH, "TaintEvictionController"),
        export=_exported_by(f"{_NODEHEALTH}.prometheus", "export_taint_eviction"),
    ),
    CatalogEntry(ENDPOINT_SLICES, _made_by("podlife.endpoints", "EndpointSliceController")),
    CatalogEntry(ENDPOINTS, _made_by("podlife.endpoints", "EndpointsController")),
    CatalogEntry(ENDPOINT_MIRRORING, _made_by("podlife.endpoints", "EndpointSliceMirroringController")),
    CatalogEntry(RESOURCE_QUOTA, _made_by("podlife.resourcequota", "ResourceQuotaController")),
    CatalogEntry(SERVICE_ACCOUNT, _made_by("podlife.serviceaccount", "ServiceAccountController")),
    CatalogEntry(TOKENS_CONTROLLER, _made_by("podlife.serviceaccount", "TokensController")),
    CatalogEntry(ROOT_CA_PUBLISHER, _made_by("podlife.serviceaccount", "RootCaCertPublisher")),
    CatalogEntry(CSR_APPROVING, _made_by("podlife.certificates", "CsrApprovingController")),
    CatalogEntry(CSR_SIGNING, _made_by("podlife.certificates", "CsrSigningController")),
    CatalogEntry(CSR_CLEANER, _made_by("podlife.certificates", "CsrCleanerController")),
    CatalogEntry(VOLUME_BINDER, _made_by("podlife.volumes", "PersistentVolumeBinder")),
    CatalogEntry(VOLUME_PROTECTION, _made_by("podlife.volumes", "VolumeProtectionController")),
    CatalogEntry(CLAIM_PROTECTION, _made_by("podlife.volumes", "ClaimProtectionController")),
    CatalogEntry(
        ATTRIBUTES_PROTECTION, _made_by("podlife.volumes", "VolumeAttributesClassProtectionController")
    ),
    CatalogEntry(EPHEMERAL_VOLUME, _made_by("podlife.volumes", "EphemeralVolumeController")),
    CatalogEntry(
        OUT_OF_SERVICE,
        _made_by(f"{_NODEHEALTH}.out_of_service", "OutOfServiceController", checks=()),
        is_usual=False,
        export=_exported_by(f"{_NODEHEALTH}.prometheus", "export_out_of_service"),
    ),
    CatalogEntry(LOCAL_PATH, _made_by("podlife.volumes", "LocalPathProvisioner"), is_usual=False),
    CatalogEntry(SCHEDULER, _made_by("podlife.scheduler", "Scheduler"), is_usual=False),
)
