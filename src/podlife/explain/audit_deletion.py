"""Which request of an audit log ended a pod, and what led to it. Pure.

A request counts by UID where it names one, or where the next request about a pod of this name does; else by name within
the pod's lifetime. Where a controller carried it out, the request that made it do so is looked for: the deletion of an
owner or of the namespace, a change of the workload, or a taint of its node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from podlife.api.selectors import FieldSelector, parse_field_selector, parse_label_selector
from podlife.explain.audit_log import WORKLOADS, AuditedRequest

# Clocks of several API servers differ a little.
_SLACK = timedelta(seconds=2)
# Creation times are whole seconds: what was asked for within the first one may be about the predecessor.
_FIRST_SECOND = timedelta(seconds=1)
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
_TAINT_EVICTION = ("taint-eviction-controller", "node-controller")
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
    # What field selectors select by, beside namespace and name, as far as it is known.
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> str:
        return self.fields.get("spec.nodeName", "")


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
    sure, doubtful = _ends_of(requests, pod)
    ends = sure or doubtful
    if not pod.node and (homes := [each.node for each in ends if each.user.startswith("system:node:")]):
        pod = replace(pod, fields={**pod.fields, "spec.nodeName": homes[-1]})
    others = [each for each in ends if not each.node]
    if others:
        # The first request sets the time of its end; where nothing tells the pod from others of its name, the last one
        # is the best guess. What calls itself an agent comes after another's request.
        last = next((each for each in reversed(others) if not each.is_called_kubelet), others[-1])
        is_told_apart = pod.created_at is not None or any(each.uid for each in ends)
        return _explained(lived, others[0] if is_told_apart else last, pod)
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


def _ends_of(
    requests: Sequence[AuditedRequest], pod: PodIdentity
) -> tuple[list[AuditedRequest], list[AuditedRequest]]:
    """Those that ended this very pod, and those of which that is only likely. Both are in the order of their time."""
    sure: list[AuditedRequest] = []
    doubtful: list[AuditedRequest] = []
    wanted, next_uid = pod.uid, ""
    is_born = False
    for each in reversed(requests):
        if _is_creation_of(each, pod):
            # All that came before it was about another pod of this name.
            is_born = _is_its_creation(each, pod) or (not each.uid and "" != wanted == next_uid)
            if is_born:
                break
            next_uid = ""
            continue
        if (chance := _chance(each, pod)) is _Chance.NONE:
            continue
        next_uid = uid = each.uid or next_uid
        # Of several pods of one name that are gone the last one is meant.
        wanted = wanted or uid
        if uid not in ("", wanted) or not _is_in_life(each, pod, is_identified=bool(uid)):
            continue
        is_sure = chance is _Chance.CERTAIN and (bool(uid) or not _is_in_first_second(each, pod))
        (sure if is_sure else doubtful).append(each)
    if is_born:
        # Its beginning is known to the microsecond.
        sure += (each for each in doubtful if _chance(each, pod) is _Chance.CERTAIN)
        doubtful = [each for each in doubtful if _chance(each, pod) is not _Chance.CERTAIN]
    return sorted(sure, key=_at), sorted(doubtful, key=_at)


def _at(request: AuditedRequest) -> datetime:
    return request.at


def _is_creation_of(request: AuditedRequest, pod: PodIdentity) -> bool:
    is_named = (request.namespace, request.name) == (pod.namespace, pod.name)
    return request.resource == "pods" and request.is_creation and is_named


def _is_its_creation(request: AuditedRequest, pod: PodIdentity) -> bool:
    if request.uid and pod.uid:
        return request.uid == pod.uid
    if pod.created_at is None:
        return not pod.uid
    return pod.created_at - _SLACK <= request.at <= pod.created_at + _FIRST_SECOND + _SLACK


def _is_in_life(request: AuditedRequest, pod: PodIdentity, *, is_identified: bool) -> bool:
    if pod.created_at is None:
        return True
    return request.at >= (pod.created_at - _SLACK if is_identified else pod.created_at)


def _is_in_first_second(request: AuditedRequest, pod: PodIdentity) -> bool:
    return pod.created_at is not None and request.at < pod.created_at + _FIRST_SECOND


class _Chance(Enum):
    """Whether a request ended the pod that had this name at the time."""

    NONE = 0
    LIKELY = 1
    CERTAIN = 2


def _chance(request: AuditedRequest, pod: PodIdentity) -> _Chance:
    if request.resource != "pods" or request.namespace != pod.namespace:
        return _Chance.NONE
    if request.verb == "deletecollection":
        is_selected = _selects(request.label_selector, pod.labels)
        return _selects_fields(request.field_selector, pod) if is_selected else _Chance.NONE
    is_end = request.name == pod.name and (request.verb == "delete" or request.is_eviction)
    return _Chance.CERTAIN if is_end else _Chance.NONE


def _selects_fields(selector: str, pod: PodIdentity) -> _Chance:
    """Likely where it asks for a field that is not known of the pod."""
    known = {**pod.fields, "metadata.namespace": pod.namespace, "metadata.name": pod.name}
    try:
        wanted = parse_field_selector(selector).requirements
    except ValueError:
        return _Chance.NONE
    if not FieldSelector(tuple(each for each in wanted if each.path in known)).matches(known):
        return _Chance.NONE
    return _Chance.CERTAIN if all(each.path in known for each in wanted) else _Chance.LIKELY


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
    if request.controller in _TAINT_EVICTION:
        return Deletion(Ending.CONTROLLER, request, taint_setter(before, pod.node, effect="NoExecute"))
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


def taint_setter(
    requests: Sequence[AuditedRequest], node: str, key: str = "", effect: str = ""
) -> AuditedRequest | None:
    """The request that gave the node the taint that it has at the end of them, None where the log does not tell.
    Without a key the last of its taints with this effect is meant."""
    setters: dict[tuple[str, str], AuditedRequest] = {}
    for each in requests:
        if not node or (each.resource, each.name) != ("nodes", node):
            continue
        if each.verb == "delete":
            setters.clear()
        elif each.taints is not None:
            before = {} if each.is_all_taints else setters
            setters = before | {taint: setters.get(taint, each) for taint in each.taints}
    found = [
        each
        for (its_key, its_effect), each in setters.items()
        if key in ("", its_key) and effect in ("", its_effect)
    ]
    return max(found, key=_at, default=None)


def happenings(requests: Sequence[AuditedRequest], pod: PodIdentity) -> Sequence[AuditedRequest]:
    """What the log tells of the pod itself, within its life."""
    return _ends_of(requests, pod)[0]
