"""What the page keeps of pods, nodes, leases, events and owners.

`explain` reads plain dictionaries, which weigh ten times their JSON. So a pod stays JSON (`spec` and `status`) and is
decoded when it is explained; unused fields (managed fields, foreign annotations) are dropped.
"""

from __future__ import annotations

from sys import intern
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Metadata, OwnerReference

_OWN_ANNOTATIONS = "podlife.dev/"
_NOTHING = msgspec.Raw(b"{}")
_decoder = msgspec.json.Decoder(dict[str, Any])


def _decode(raw: msgspec.Raw) -> Object:
    """Empty for anything but an object: a strange pod is shown as far as it can be."""
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


class KeptMetadata(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Times stay text: `explain` parses those that it needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)
        if self.labels:
            self.labels = {intern(key): intern(value) for key, value in self.labels.items()}
        if self.annotations:
            own = {key: value for key, value in self.annotations.items() if key.startswith(_OWN_ANNOTATIONS)}
            self.annotations = own or None


class SeenPod(msgspec.Struct, gc=False):
    metadata: KeptMetadata
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING

    def __post_init__(self) -> None:
        # A copy: otherwise every pod would keep the whole page of the list that it was read from.
        self.spec, self.status = self.spec.copy(), self.status.copy()

    def as_object(self) -> Object:
        metadata = msgspec.to_builtins(self.metadata)
        return {"metadata": metadata, "spec": _decode(self.spec), "status": _decode(self.status)}


class _NodeStatus(msgspec.Struct, omit_defaults=True):
    conditions: list[dict[str, Any]] = []
    allocatable: dict[str, Any] = {}


class SeenNode(msgspec.Struct):
    metadata: KeptMetadata
    spec: dict[str, Any] = {}
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    def as_object(self) -> Object:
        built: Object = msgspec.to_builtins(self)
        return built


class _LeaseSpec(msgspec.Struct, rename="camel", gc=False):
    renew_time: str | None = None


class SeenLease(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


class _JobSpec(msgspec.Struct, rename="camel", gc=False):
    ttl_seconds_after_finished: int | None = None


class _JobStatus(msgspec.Struct):
    conditions: list[dict[str, Any]] = []


class SeenJob(msgspec.Struct, gc=False):
    """What tells when a Job, and its pods with it, expires."""

    metadata: Metadata
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)

    @property
    def expires(self) -> bool:
        return self.spec.ttl_seconds_after_finished is not None


class _EventMetadata(msgspec.Struct, rename="camel", gc=False):
    """Without a name: an informer keeps the last object of each name, and so one event per namespace. Clusters have
    very many of them, and each is read once."""

    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def name(self) -> str:
        return ""


class SeenEvent(msgspec.Struct, rename="camel", gc=False):
    metadata: _EventMetadata
    involved_object: dict[str, Any] = {}
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: dict[str, Any] | None = None
    source: dict[str, Any] | None = None
    reporting_component: str = ""

    def as_object(self) -> Object:
        built: Object = msgspec.to_builtins(self)
        return built
