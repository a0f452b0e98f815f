"""Who asked the API server for what, from its audit log: the requests that may have ended a pod. Pure.

`AuditCollection` reads a log line by line and keeps what concerns one pod or namespace, in bounded memory.
`audit_deletion` decides which request deleted the pod.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import msgspec

_MOST_KEPT = 20_000
_READS = (b'"verb":"get"', b'"verb":"list"', b'"verb":"watch"')
_CONTROLLERS_USER = "system:kube-controller-manager"
_CONTROLLER_AGENTS = ("kube-controller-manager/", "podlife/")
_SERVICE_ACCOUNT = "system:serviceaccount:kube-system:"
_CONTROLLER_NAME = re.compile(r"[a-z]+(-[a-z]+)+")
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
    has_field_selector: bool = False

    @property
    def is_eviction(self) -> bool:
        return self.subresource == "eviction" and self.verb == "create"

    @property
    def controller(self) -> str:
        """The controller that it came from, as kube-controller-manager and podlife name it; "" for all others."""
        if self.user.startswith(_SERVICE_ACCOUNT):
            return self.user.removeprefix(_SERVICE_ACCOUNT)
        last = self.agent.rpartition("/")[2].rpartition(":")[2]
        is_part = self.user == _CONTROLLERS_USER or self.agent.startswith(_CONTROLLER_AGENTS)
        if is_part and _CONTROLLER_NAME.fullmatch(last):
            return last
        return "a controller" if self.user == _CONTROLLERS_USER else ""

    @property
    def node(self) -> str:
        """The node whose agent sent it; "" for everybody else."""
        if self.user.startswith("system:node:"):
            return self.user.removeprefix("system:node:")
        # Simulated nodes have one identity for all.
        return "its node" if self.agent.startswith("podlife/") and self.agent.endswith("/kubelet") else ""


class AuditCollection:
    """What a log tells of one namespace, and of one pod in it if it is named. Feed it lines, in any order."""

    def __init__(self, namespace: str = "", pod: str = "") -> None:
        self._namespace = namespace
        self._pod = pod
        self._kept: deque[AuditedRequest] = deque(maxlen=_MOST_KEPT)
        self.unreadable = 0

    def add(self, line: bytes) -> None:
        # Most lines are about something else: they are not worth decoding.
        if b"ResponseComplete" not in line or self._namespace.encode() not in line or line.isspace():
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
        if self._namespace and request.namespace != self._namespace:
            return False
        if request.resource == "pods":
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
    if not is_wanted and reference.subresource != "eviction":
        return None
    query = parse_qs(event.request_uri.partition("?")[2])
    if "dryRun" in query or _field(event.request_object, "dryRun"):
        return None
    acting = event.impersonated_user
    return AuditedRequest(
        at,
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
        "fieldSelector" in query,
    )


def _uid(event: _Event) -> str:
    """From the options that name what was meant, or from the answer that shows what it met."""
    options = event.request_object
    if event.object_ref is not None and event.object_ref.subresource == "eviction":
        options = _field(options, "deleteOptions")
    answered = _field(event.response_object, "metadata") if event.verb != "deletecollection" else None
    found = [
        _field(_field(options, "preconditions"), "uid"),
        _field(answered, "uid") if not (event.object_ref and event.object_ref.subresource) else None,
        event.response_status and event.response_status.details and event.response_status.details.uid,
        event.object_ref and event.object_ref.uid,
    ]
    return next((each for each in found if isinstance(each, str) and each), "")


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
