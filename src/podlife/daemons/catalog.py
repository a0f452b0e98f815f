"""Which controllers there are: their names, what each is for, and how one is made. None is imported before that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from podlife.cli.commands.controllers.nodehealth_options import (
    NODE_LIFECYCLE,
    TAINT_EVICTION,
    make_node_lifecycle,
    make_taint_eviction,
)
from podlife.cli.commands.controllers.out_of_service_options import OUT_OF_SERVICE, make_out_of_service
from podlife.errors import ConfigError
from podlife.workloads import CONTROLLERS

if TYPE_CHECKING:
    from podlife.controller import ControlPlane, Runnable

__all__ = ["OWNER_GC", "POD_GC", "SCHEDULER", "Known", "choose", "known_controllers"]

OWNER_GC = "garbage-collector-controller"
POD_GC = "pod-garbage-collector-controller"
SCHEDULER = "scheduler"

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
# What kube-controller-manager called them before 1.28, and still understands, where that is not the short name.
_OLDER = {
    OWNER_GC: ("garbagecollector",),
    POD_GC: ("podgc",),
    NODE_LIFECYCLE: ("nodelifecycle",),
    # Nobody else has it: this is how people spell it.
    OUT_OF_SERVICE: ("outofservice", f"{OUT_OF_SERVICE}-controller"),
}
# One word for those that belong together.
_TOGETHER = {"nodehealth": (NODE_LIFECYCLE, TAINT_EVICTION)}
# Those of kube-controller-manager v1.36 that are not here: who names one knows very well what they mean.
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
class Known:
    """`make` is given a control plane, and options of the controller's class."""

    name: str
    make: Callable[..., Runnable]
    # Whether `*` means it, too.
    is_usual: bool = True

    @property
    def short(self) -> str:
        return self.name.removesuffix("-controller")

    @property
    def about(self) -> str:
        return _ABOUT.get(self.name, "")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.short, *_OLDER.get(self.name, ()))


def known_controllers() -> tuple[Known, ...]:
    """In the order in which they are shown and started."""
    workloads = tuple(Known(name, make) for name, make in CONTROLLERS.items())
    health = (Known(NODE_LIFECYCLE, make_node_lifecycle), Known(TAINT_EVICTION, make_taint_eviction))
    collectors = (Known(OWNER_GC, _make_owner_gc), Known(POD_GC, _make_pod_gc))
    return (*workloads, *collectors, *health, _OUT_OF_SERVICE, _SCHEDULER)


def choose(words: Iterable[str]) -> tuple[Known, ...]:
    """Those that are meant by names, `*` and `-name`. Raises ConfigError for a name that nobody has, for one that is
    both wanted and not, and when nothing is left."""
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


def _make_owner_gc(plane: ControlPlane, **options: Any) -> Runnable:
    from podlife.ownergc import OwnerGarbageCollector

    return OwnerGarbageCollector(plane, **options)


def _make_pod_gc(plane: ControlPlane, **options: Any) -> Runnable:
    from podlife.daemons.pod_gc_controller import PodGarbageCollector

    return PodGarbageCollector(plane, **options)


def _make_scheduler(plane: ControlPlane, **options: Any) -> Runnable:
    from podlife.scheduler import Scheduler

    return Scheduler(plane, **options)


_OUT_OF_SERVICE = Known(OUT_OF_SERVICE, make_out_of_service, is_usual=False)
_SCHEDULER = Known(SCHEDULER, _make_scheduler, is_usual=False)
