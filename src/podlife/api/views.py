"""Shared views: structs that declare the fields their readers need.

A view is never written back. Every view has `.metadata`; a reader that needs more declares its own view, with
`Metadata` or a subclass. Caches hold hundreds of thousands of views: they are not tracked by the garbage collector
(`gc=False`: they cannot form cycles), absent collections share one empty tuple, and common strings (namespaces, nodes,
phases, owners) are interned.
"""

from __future__ import annotations

from datetime import datetime
from sys import intern

import msgspec


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    def __post_init__(self) -> None:
        self.api_version, self.kind = intern(self.api_version), intern(self.kind)
        self.name, self.uid = intern(self.name), intern(self.uid)


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """Identifies an object. Labels and annotations, the largest parts, are left to views whose readers need them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    def __post_init__(self) -> None:
        self.namespace = intern(self.namespace)


class MetadataOnly(msgspec.Struct, gc=False):
    """Any object, for readers that only need to know that it exists."""

    metadata: Metadata


class Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""

    def __post_init__(self) -> None:
        self.type, self.status = intern(self.type), intern(self.status)


class Taint(msgspec.Struct, gc=False):
    key: str = ""
    effect: str = ""

    def __post_init__(self) -> None:
        self.key, self.effect = intern(self.key), intern(self.effect)


class NodeSpec(msgspec.Struct, gc=False):
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, gc=False):
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, gc=False):
    """Conditions and taints of a node."""

    metadata: Metadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class PodStatus(msgspec.Struct, gc=False):
    phase: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        self.phase, self.reason = intern(self.phase), intern(self.reason)


class Pod(msgspec.Struct, gc=False):
    """Node and phase of a pod."""

    metadata: Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


def controller_of(metadata: Metadata) -> OwnerReference | None:
    """The managing controller of the object, if any."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)
