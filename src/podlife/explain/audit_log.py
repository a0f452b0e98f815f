"""Who asked the API server for what, from its audit log: the requests that may have ended a pod. Pure.

`AuditCollection` reads a log line by line and keeps what concerns one pod or namespace, in bounded memory.
`audit_deletion` decides which request deleted the pod.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import msgspec

_MOST_KEPT = 20_000
_READS = (b'"verb":"get"', b'"verb":"list"', b'"verb":"watch"')
# Users that run many controllers: their User-Agent says which it was. Anybody else may call itself one and is none.
_CONTROLLER_USERS = frozenset(
    {
        "system:kube-controller-manager",
        "system:serviceaccount:podlife-system:podlife-controllers",
        "system:serviceaccount:podlife-system:podlife-gc",
    }
)
_SERVICE_ACCOUNT = "system:serviceaccount:kube-system:"
_CONTROLLER_NAME = re.compile(r"[a-z]+(-[a-z]+)+")
UNNAMED_CONTROLLER = "a controller"
# The one user that all simulated nodes of a cluster are.
SIMULATED_NODES = "podlife:simulated-nodes"
# A node has a handful of taints.
_MOST_TAINTS = 50
# The kinds that own pods, or own their owners, by resource.
WORKLOADS = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "jobs": "Job",
    "cronjobs": "CronJob",
    "replicationcontrollers": "ReplicationController",
}


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] = ()


class _Reference(msgspec.Struct, rename="camel", frozen=True):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    subresource: str = ""


class _Details(msgspec.Struct, frozen=True):
    uid: str = ""


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    details: _Details | None = None


class _Event(msgspec.Struct, rename="camel", frozen=True):
    verb: str = ""
    stage: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    user: _User = _User()
    impersonated_user: _User | None = None
    source_ips: tuple[str, ...] = msgspec.field(default=(), name="sourceIPs")
    user_agent: str = ""
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    request_object: Any = None
    response_object: Any = None
    request_received_timestamp: datetime | None = None


_decode = msgspec.json.Decoder(_Event).decode


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """A write that was carried out. `uid` is the object's, where the request or its answer names it."""

    at: datetime
    verb: str
    user: str
    groups: tuple[str, ...]
    on_behalf_of: str
    agent: str
    source_ip: str
    resource: str
    subresource: str
    namespace: str
    name: str
    uid: str
    label_selector: str = ""
    field_selector: str = ""
    # Key and effect of the taints that it gives a node; None where it does not touch them, or the log does not tell.
    taints: tuple[tuple[str, str], ...] | None = None
    # Whether those are all that the node has from then on.
    is_all_taints: bool = False

    @property
    def is_eviction(self) -> bool:
        return self.subresource == "eviction" and self.verb == "create"

    @property
    def is_creation(self) -> bool:
        return self.verb == "create" and not self.subresource

    @property
    def controller(self) -> str:
        """The controller that it came from, as kube-controller-manager and podlife name it; "" for all others."""
        if self.on_behalf_of:
            return ""
        if self.user in _CONTROLLER_USERS:
            last = self.agent.rpartition("/")[2].rpartition(":")[2]
            return last if _CONTROLLER_NAME.fullmatch(last) else UNNAMED_CONTROLLER
        return self.user.removeprefix(_SERVICE_ACCOUNT) if self.user.startswith(_SERVICE_ACCOUNT) else ""

    @property
    def is_called_kubelet(self) -> bool:
        """Whether its client calls itself an agent, as `podlife sim` does with anybody's identity."""
        return self.agent.endswith("/kubelet")

    @property
    def node(self) -> str:
        """The node whose agent sent it; "" for everybody else."""
        if self.user.startswith("system:node:"):
            return self.user.removeprefix("system:node:")
        return "its node" if self.user == SIMULATED_NODES else ""


class AuditCollection:
    """What a log tells of one namespace, and of one pod in it if it is named, or of one node. Feed it lines, in any
    order."""

    def __init__(self, namespace: str = "", pod: str = "", *, node: str = "") -> None:
        self._namespace = namespace
        self._pod = pod
        self._node = node
        self._subject = (namespace or node).encode()
        self._kept: deque[AuditedRequest] = deque(maxlen=_MOST_KEPT)
        self.unreadable = 0

    def add(self, line: bytes) -> None:
        # Most lines are about something else: they are not worth decoding.
        is_ours = self._subject in line or b'"nodes"' in line
        if b"ResponseComplete" not in line or not is_ours or line.isspace():
            self.unreadable += not line.isspace() and not line.startswith(b"{")
            return
        # The verb stands before the user, and nothing that a client chooses stands unescaped before it.
        head = line[: max(line.find(b'"user":'), 0)]
        if any(each in head for each in _READS):
            return
        try:
            event = _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.unreadable += 1
            return
        request = _request(event) if event.stage == "ResponseComplete" else None
        if request is not None and self._concerns(request):
            self._kept.append(request)

    @property
    def requests(self) -> Sequence[AuditedRequest]:
        """The oldest first."""
        return sorted(self._kept, key=lambda each: each.at)

    def _concerns(self, request: AuditedRequest) -> bool:
        if request.resource == "nodes":
            is_told = request.taints is not None or request.verb == "delete"
            return is_told and not request.subresource and self._node in ("", request.name)
        if self._node:
            return False
        if self._namespace and request.namespace != self._namespace:
            return False
        if request.resource == "pods":
            if request.is_creation:
                return request.name == self._pod
            is_end = request.verb in ("delete", "deletecollection") or request.is_eviction
            return is_end and self._pod in ("", request.name or self._pod)
        if request.verb == "delete":
            return not request.subresource
        return request.resource in WORKLOADS and request.subresource in ("", "scale")


def _request(event: _Event) -> AuditedRequest | None:
    """None for what was not carried out, or changes nothing."""
    reference, status, at = event.object_ref, event.response_status, event.request_received_timestamp
    if reference is None or status is None or at is None or not 200 <= status.code < 300:
        return None
    is_wanted = event.verb in ("delete", "deletecollection", "update", "patch")
    is_pod_creation = reference.resource == "pods" and reference.subresource in ("", "eviction")
    if not is_wanted and not (event.verb == "create" and is_pod_creation):
        return None
    query = parse_qs(event.request_uri.partition("?")[2])
    if "dryRun" in query or _field(event.request_object, "dryRun") or _field(_options(event), "dryRun"):
        return None
    acting = event.impersonated_user
    is_of_node = reference.resource == "nodes" and event.verb in ("update", "patch")
    taints, is_all_taints = _taints(event) if is_of_node else (None, False)
    return AuditedRequest(
        # An audit log is in UTC, even one that does not say so.
        at if at.tzinfo is not None else at.replace(tzinfo=UTC),
        event.verb,
        event.user.username,
        event.user.groups,
        acting.username if acting is not None else "",
        event.user_agent,
        event.source_ips[0] if event.source_ips else "",
        reference.resource,
        reference.subresource,
        reference.namespace,
        reference.name,
        _uid(event),
        (query.get("labelSelector") or [""])[0],
        (query.get("fieldSelector") or [""])[0],
        taints,
        is_all_taints,
    )


def _options(event: _Event) -> Any:
    """How it is to be deleted, for a deletion or an eviction."""
    is_eviction = event.object_ref is not None and event.object_ref.subresource == "eviction"
    return _field(event.request_object, "deleteOptions") if is_eviction else event.request_object


def _taints(event: _Event) -> tuple[tuple[tuple[str, str], ...] | None, bool]:
    """What an update or a patch of a node makes of its taints, and whether that is all of them."""
    sent = event.request_object
    if not isinstance(sent, list):
        listed = _field(_field(sent, "spec"), "taints")
        # An update that has none takes all away; a patch that has none leaves them.
        is_told = listed is not None or (event.verb == "update" and isinstance(sent, dict))
        return (_keys(listed), True) if is_told else (None, False)
    found: list[tuple[str, str]] = []
    is_all = is_touched = False
    for step in sent:
        path, value = _field(step, "path"), _field(step, "value")
        if isinstance(path, str) and f"{path}/".startswith("/spec/taints/"):
            is_touched, is_all = True, is_all or path == "/spec/taints"
            found += _keys(value if isinstance(value, list) else [value])
    return (tuple(found[:_MOST_TAINTS]) if is_touched else None), is_all


def _keys(taints: Any) -> tuple[tuple[str, str], ...]:
    listed = taints[:_MOST_TAINTS] if isinstance(taints, list) else ()
    pairs = ((_field(each, "key"), _field(each, "effect")) for each in listed)
    return tuple((key, effect) for key, effect in pairs if isinstance(key, str) and isinstance(effect, str))


def _uid(event: _Event) -> str:
    """From the options that name what was meant, or from the answer that shows what it met."""
    answered = _field(event.response_object, "metadata") if event.verb != "deletecollection" else None
    found = [
        _field(_field(_options(event), "preconditions"), "uid"),
        _field(answered, "uid") if not (event.object_ref and event.object_ref.subresource) else None,
        event.response_status and event.response_status.details and event.response_status.details.uid,
        event.object_ref and event.object_ref.uid,
    ]
    return next((each for each in found if isinstance(each, str) and each), "")


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
