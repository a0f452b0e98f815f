"""The catalogue of controllers: their names, what each is for, how one is made and how its metrics are exported.

No controller is imported before one is made.
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

_ABOUT = {
    "replicaset-controller": "as many pods of one template as are asked for",
    "statefulset-controller": "pods with a name, an order and volumes of their own",
    "job-controller": "pods that run to their end, counted exactly",
    "ttl-after-finished-controller": "Jobs that are over go after their time to live",
    "daemonset-controller": "one pod on every node that fits",
    "deployment-controller": "ReplicaSets that follow one another: rollouts, their history and their deadline",
    "disruption-controller": "how many pods of a PodDisruptionBudget may be evicted, which `kubectl drain` waits for",
    OWNER_GC: "what was owned goes with its owner: background, foreground, orphan",
    SCHEDULER: "a node for every pod that has none; only where it is named, since clusters have one",
    POD_GC: "pods that nobody else finishes; the same as `podlife gc run`",
    NODE_LIFECYCLE: "nodes that fall silent are shown as not ready and tainted, zone by zone",
    TAINT_EVICTION: "pods leave nodes with a NoExecute taint when they do not tolerate it any longer",
    OUT_OF_SERVICE: "nodes that are confirmed dead give up their pods and volumes; only where it is named",
}
# Names from before kube-controller-manager 1.28, which it still accepts, if not the short name.
_OLDER = {
    OWNER_GC: ("garbagecollector",),
    POD_GC: ("podgc",),
    NODE_LIFECYCLE: ("nodelifecycle",),
    # Not upstream: other spellings that users try.
    OUT_OF_SERVICE: ("outofservice", f"{OUT_OF_SERVICE}-controller"),
}
# One word for controllers that belong together.
_TOGETHER = {"nodehealth": (NODE_LIFECYCLE, TAINT_EVICTION)}
# Controllers of kube-controller-manager v1.36 that podlife does not have: a user who names one made no typo.
_NOT_HERE = frozenset(
    f"{name}-controller"
    for name in (
        *("bootstrap-signer", "certificatesigningrequest-approving", "certificatesigningrequest-cleaner"),
        *("certificatesigningrequest-signing", "cloud-node-lifecycle", "clusterrole-aggregation", "cronjob"),
        *("device-taint-eviction", "endpoints", "endpointslice", "endpointslice-mirroring"),
        *(
            "ephemeral-volume",
            "horizontal-pod-autoscaler",
            "kube-apiserver-serving-clustertrustbundle-publisher",
        ),
        *("legacy-serviceaccount-token-cleaner", "namespace", "node-ipam", "node-route"),
        *("persistentvolume-attach-detach", "persistentvolume-binder", "persistentvolume-expander"),
        *("persistentvolume-protection", "persistentvolumeclaim-protection", "podcertificaterequest-cleaner"),
        *("podgroup-protection", "replicationcontroller", "resourceclaim", "resourcepoolstatusrequest"),
        *("resourcequota", "root-ca-certificate-publisher", "selinux-warning", "service-cidr", "service-lb"),
        *("serviceaccount", "serviceaccount-token", "storage-version-migrator"),
        *("storageversion-garbage-collector", "token-cleaner", "ttl"),
        *("validatingadmissionpolicy-status", "volumeattributesclass-protection"),
    )
)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """`make` takes a control plane and the options of the controller's class; `export` registers metrics beyond those
    that every controller has."""

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
        raise ConfigError(f"--controllers both names and leaves out {both[0]}")
    chosen = tuple(
        each
        for each in known
        if each.name in wanted or (is_all and each.is_usual and each.name not in unwanted)
    )
    if not chosen and not unwanted:
        raise ConfigError("--controllers names none: `podlife controllers list` shows all there are")
    if not chosen:
        rest = ",".join(f"-{name}" for name in sorted(unwanted))
        raise ConfigError(f"--controllers leaves nothing to run: for all the others write '*,{rest}'")
    return chosen


def _unknown(name: str, known: Iterable[str]) -> str:
    if f"{name.removesuffix('-controller')}-controller" in _NOT_HERE:
        return (
            f"--controllers: kube-controller-manager has a {name}, podlife has none; `podlife controllers list` "
            "shows all there are"
        )
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"--controllers knows no {name!r}: {meant}`podlife controllers list` shows all there are"


def _made_by(module: str, name: str, **defaults: Any) -> Callable[..., Runnable]:
    def make(plane: ControlPlane, **options: Any) -> Runnable:
        controller: Runnable = getattr(import_module(module), name)(plane, **defaults | options)
        return controller

    return make


def _make_pod_gc(plane: ControlPlane, **options: Any) -> Runnable:
    """With caches of its own, since it keeps less of a pod than the other controllers do."""
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
    CatalogEntry(
        OUT_OF_SERVICE,
        _made_by(f"{_NODEHEALTH}.out_of_service", "OutOfServiceController", checks=()),
        is_usual=False,
        export=_exported_by(f"{_NODEHEALTH}.prometheus", "export_out_of_service"),
    ),
    CatalogEntry(SCHEDULER, _made_by("podlife.scheduler", "Scheduler"), is_usual=False),
)
