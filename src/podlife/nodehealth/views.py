"""What node health decodes of nodes, leases and pods, and nothing else of them.

Both controllers share these views, so nodes and pods are watched and kept once for both. Of a pod only its tolerations
and its Ready condition are kept; nearly all pods of a cluster have the same tolerations, which are held once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from podlife.api.views import Metadata

__all__ = [
    "POD_INDEXERS",
    "Lease",
    "Node",
    "NodeCondition",
    "Pod",
    "Taint",
    "Toleration",
    "node_reference",
    "pods_on",
]

READY = "Ready"
_ON_NODE = "node"


class NodeMetadata(Metadata):
    labels: dict[str, str] = {}


class Taint(msgspec.Struct, rename="camel", gc=False, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    # As the server writes it: it is compared, never reckoned with.
    time_added: str | None = None


class NodeSpec(msgspec.Struct, gc=False):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(msgspec.Struct, rename="camel", gc=False, frozen=True):
    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None


class NodeStatus(msgspec.Struct, gc=False):
    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct, gc=False):
    metadata: NodeMetadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def ready(self) -> NodeCondition | None:
        return next((each for each in self.status.conditions if each.type == READY), None)


class LeaseSpec(msgspec.Struct, rename="camel", gc=False):
    renew_time: datetime | None = None
    lease_duration_seconds: int | None = None


class Lease(msgspec.Struct, gc=False):
    """Of a node, in the namespace kube-node-lease."""

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


class PodMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)
        self.tolerations = _shared(self.tolerations)


@lru_cache(maxsize=1024)
def _shared(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return tolerations


class PodCondition(msgspec.Struct, gc=False, frozen=True):
    type: str = ""
    status: str = ""


class PodStatus(msgspec.Struct, gc=False):
    conditions: tuple[PodCondition, ...] = ()

    def __post_init__(self) -> None:
        # The others weigh more than the rest of the pod, and nothing here asks for them.
        self.conditions = tuple(
            _shared_condition(each.type, each.status) for each in self.conditions if each.type == READY
        )


@lru_cache(maxsize=16)
def _shared_condition(type_: str, status: str) -> PodCondition:
    return PodCondition(type_, status)


class Pod(msgspec.Struct, gc=False):
    metadata: PodMetadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_shown_ready(self) -> bool:
        """Whether it has a Ready condition that is not False (NL-41)."""
        return any(each.status != "False" for each in self.status.conditions)

    @property
    def reference(self) -> dict[str, str]:
        """What an event about it names."""
        metadata = self.metadata
        return {
            "kind": "Pod",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "apiVersion": "v1",
            "resourceVersion": metadata.resource_version,
        }


def pods_on(pod: Pod) -> Sequence[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


POD_INDEXERS = {_ON_NODE: pods_on}


def node_reference(name: str, uid: str) -> dict[str, str]:
    """What an event about a node names."""
    return {"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"}
