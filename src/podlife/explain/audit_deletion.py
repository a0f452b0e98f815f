"""Which request of an audit log ended a pod, and what led to it. Pure.

A request counts by UID where it names one, else by name within the pod's lifetime. Where a controller carried it out,
the request that made it do so is looked for: the deletion of an owner or of the namespace, or a change of the workload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from podlife.api.selectors import parse_label_selector
from podlife.explain.audit_log import WORKLOADS, AuditedRequest

# Creation times are whole seconds, and clocks of several API servers differ a little.
_SLACK = timedelta(seconds=2)
# How long before a controller deletes a pod its workload may have been changed for it.
_TRIGGER_SECONDS = 600.0
_LAST_HOUR_SECONDS = 3600.0
# Those that delete pods because their workload was changed; the others have reasons of their own.
_WORKLOAD_CONTROLLERS = frozenset(
    f"{kind}-controller"
    for kind in (
        "replicaset",
        "deployment",
        "statefulset",
        "daemonset",
        "daemon-set",
        "job",
        "cronjob",
        "replication",
    )
)
_POD_COLLECTORS = ("pod-garbage-collector", "pod-garbage-collector-controller")
_COLLECTORS = ("generic-garbage-collector", "garbage-collector-controller")


class Ending(Enum):
    DELETED = "deleted"
    EVICTED = "evicted"
    OWNER_DELETED = "owner"
    NAMESPACE_DELETED = "namespace"
    CONTROLLER = "controller"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """A pod as far as it is known: of one that is gone perhaps no more than its name."""

    namespace: str
    name: str
    uid: str = ""
    created_at: datetime | None = None
    # Kind and name of what controls it.
    owner: tuple[str, str] = ("", "")
    labels: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """`request` ended the pod; `origin` is what led to it, where that was another request."""

    ending: Ending
    request: AuditedRequest
    origin: AuditedRequest | None = None
    owner: tuple[str, str] = ("", "")

    @property
    def is_pod_gc(self) -> bool:
        return self.request.controller in _POD_COLLECTORS

    @property
    def is_asked_for(self) -> bool:
        """Whether it is known who asked, beyond the controller or the node that carried it out."""
        return self.origin is not None or self.ending in (Ending.DELETED, Ending.EVICTED)


def find_deletion(requests: Sequence[AuditedRequest], pod: PodIdentity) -> Deletion | None:
    """None where the log does not tell. `requests` are in the order of their time."""
    lived = [each for each in requests if pod.created_at is None or each.at >= pod.created_at - _SLACK]
    ends = [each for each in lived if _ends(each, pod)]
    if not pod.uid and ends and (last := next((each.uid for each in reversed(ends) if each.uid), "")):
        # Several pods of one name: the last one is meant.
        ends = [each for each in ends if each.uid in ("", last)]
    others = [each for each in ends if not each.node]
    if others:
        # The first request sets the time of its end; without its beginning the last one is the best guess.
        return _explained(lived, others[0] if pod.created_at is not None else others[-1], pod)
    if not ends and not pod.uid:
        # Nothing shows that there ever was such a pod.
        return None
    if pod.created_at is None and ends:
        # It may have lived only after what the log tells of earlier.
        lived = [each for each in lived if (ends[-1].at - each.at).total_seconds() < _LAST_HOUR_SECONDS]
    if home := [each for each in lived if each.resource == "namespaces" and each.name == pod.namespace]:
        return Deletion(Ending.NAMESPACE_DELETED, home[-1], home[-1])
    if pod.owner[1] and (origin := _owner_deletion(lived, pod, pod.owner)) is not None:
        return Deletion(Ending.OWNER_DELETED, origin[1], origin[1], origin[0])
    return Deletion(Ending.NODE, ends[-1]) if ends else None


def _ends(request: AuditedRequest, pod: PodIdentity) -> bool:
    if request.resource != "pods" or request.namespace != pod.namespace:
        return False
    if pod.uid and request.uid and request.uid != pod.uid:
        return False
    if request.verb == "deletecollection":
        return not request.has_field_selector and _selects(request.label_selector, pod.labels)
    return request.name == pod.name and (request.verb == "delete" or request.is_eviction)


def _selects(selector: str, labels: dict[str, str] | None) -> bool:
    if not selector:
        return True
    if labels is None:
        return False
    try:
        return parse_label_selector(selector).matches(labels)
    except ValueError:
        return False


def _explained(lived: Sequence[AuditedRequest], request: AuditedRequest, pod: PodIdentity) -> Deletion:
    if request.is_eviction:
        return Deletion(Ending.EVICTED, request)
    if not request.controller:
        return Deletion(Ending.DELETED, request)
    before = [each for each in lived if each.at <= request.at + _SLACK]
    if request.controller in _COLLECTORS and (origin := _owner_deletion(before, pod, pod.owner)) is not None:
        return Deletion(Ending.OWNER_DELETED, request, origin[1], origin[0])
    if request.controller == "namespace-controller":
        home = [each for each in before if each.resource == "namespaces" and each.verb == "delete"]
        return Deletion(Ending.NAMESPACE_DELETED, request, home[-1] if home else None)
    if request.controller not in _WORKLOAD_CONTROLLERS:
        return Deletion(Ending.CONTROLLER, request)
    recent = (each for each in before if (request.at - each.at).total_seconds() < _TRIGGER_SECONDS)
    changes = [each for each in recent if _is_change(each, pod) and not each.controller and not each.node]
    return Deletion(Ending.CONTROLLER, request, changes[-1] if changes else None, pod.owner)


def _owner_deletion(
    requests: Sequence[AuditedRequest], pod: PodIdentity, owner: tuple[str, str]
) -> tuple[tuple[str, str], AuditedRequest] | None:
    """The deletion that began it: of the outermost owner, by somebody who is no controller."""
    found = [
        each
        for each in requests
        if each.verb == "delete" and each.resource in WORKLOADS and _may_own(each, pod, owner)
    ]
    people = [each for each in found if not each.controller] or found
    if not people:
        return None
    first = people[-1]
    return (WORKLOADS[first.resource], first.name), first


def _is_change(request: AuditedRequest, pod: PodIdentity) -> bool:
    is_write = request.verb in ("update", "patch") and request.resource in WORKLOADS
    return is_write and _may_own(request, pod, pod.owner)


def _may_own(request: AuditedRequest, pod: PodIdentity, owner: tuple[str, str]) -> bool:
    """Whether it is about the owner, or about what by its name owns that: pods and ReplicaSets are named after what
    made them."""
    kind, name = WORKLOADS[request.resource], request.name
    if owner[1]:
        return (kind, name) == owner or (
            kind in ("Deployment", "CronJob") and _is_named_after(owner[1], name)
        )
    return _is_named_after(pod.name, name)


def _is_named_after(name: str, maker: str) -> bool:
    rest = name.removeprefix(f"{maker}-")
    return bool(maker) and rest != name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]{5})?", rest) is not None


def happenings(requests: Iterable[AuditedRequest], pod: PodIdentity) -> Iterator[AuditedRequest]:
    """What the log tells of the pod itself, within its life."""
    for each in requests:
        if _ends(each, pod) and (pod.created_at is None or each.at >= pod.created_at - _SLACK):
            yield each
