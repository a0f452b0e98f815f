"""Views of nodes, leases and pods for node health.

Both controllers share these views, so nodes and pods are watched and cached once. Of a pod only tolerations and the
Ready condition are kept; nearly all pods have the same tolerations, which are stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from podlife.api.views import Metadata

READY = "Ready"
_ON_NODE = "node"


class MonitoredNodeMetadata(Metadata):
    labels: dict[str, str] = {}


class NodeTaint(msgspec.Struct, rename="camel", gc=False, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    # A string: only compared for equality.
    time_added: str | None = None


class MonitoredNodeSpec(msgspec.Struct, gc=False):
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False


class MonitoredNodeCondition(msgspec.Struct, rename="camel", gc=False, frozen=True):
    type: str = ""
    status: str = ""
    # A string: only compared for equality.
    last_heartbeat_time: str | None = None


class MonitoredNodeStatus(msgspec.Struct, gc=False):
    conditions: tuple[MonitoredNodeCondition, ...] = ()


class MonitoredNode(msgspec.Struct, gc=False):
    metadata: MonitoredNodeMetadata
    spec: MonitoredNodeSpec = msgspec.field(default_factory=MonitoredNodeSpec)
    status: MonitoredNodeStatus = msgspec.field(default_factory=MonitoredNodeStatus)

    @property
    def ready(self) -> MonitoredNodeCondition | None:
        return next((each for each in self.status.conditions if each.type == READY), None)


class LeaseSpec(msgspec.Struct, rename="camel", gc=False):
    renew_time: datetime | None = None
    lease_duration_seconds: int | None = None


class Lease(msgspec.Struct, gc=False):
    """A node's lease, in the namespace kube-node-lease."""

    metadata: Metadata
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class Toleration(msgspec.Struct, rename="camel", gc=False, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    @property
    def as_mapping(self) -> Mapping[str, Any]:
        return {"key": self.key, "operator": self.operator, "value": self.value, "effect": self.effect}


class MonitoredPodMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)


class MonitoredPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)
        self.tolerations = _shared(self.tolerations)


@lru_cache(maxsize=1024)
def _shared(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return tolerations


class MonitoredPodCondition(msgspec.Struct, gc=False, frozen=True):
    type: str = ""
    status: str = ""


class MonitoredPodStatus(msgspec.Struct, gc=False):
    conditions: tuple[MonitoredPodCondition, ...] = ()

    def __post_init__(self) -> None:
        # Others are not needed, and are larger than the rest of the pod.
        self.conditions = tuple(
            _shared_condition(each.type, each.status) for each in self.conditions if each.type == READY
        )


@lru_cache(maxsize=16)
def _shared_condition(type_: str, status: str) -> MonitoredPodCondition:
    return MonitoredPodCondition(type_, status)


class MonitoredPod(msgspec.Struct, gc=False):
    metadata: MonitoredPodMetadata
    spec: MonitoredPodSpec = msgspec.field(default_factory=MonitoredPodSpec)
    status: MonitoredPodStatus = msgspec.field(default_factory=MonitoredPodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_shown_ready(self) -> bool:
        """Whether it has a Ready condition that is not False (NL-41)."""
        return any(each.status != "False" for each in self.status.conditions)

    @property
    def reference(self) -> dict[str, str]:
        """Object reference for events."""
        metadata = self.metadata
        return {
            "kind": "Pod",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "apiVersion": "v1",
            "resourceVersion": metadata.resource_version,
        }


def pods_on(pod: MonitoredPod) -> Sequence[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


POD_INDEXERS = {_ON_NODE: pods_on}


def node_reference(name: str, uid: str) -> dict[str, str]:
    """Object reference for events."""
    return {"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"}
