"""What is decoded of pods and nodes: what a pod asks for, what a node has."""

from __future__ import annotations

from sys import intern
from typing import Any

import msgspec

from podlife.api.views import Condition as PlainCondition
from podlife.api.views import Metadata as PlainMetadata

__all__ = ["Condition", "Container", "Metadata", "Node", "Pod", "PodSpec"]


class Metadata(PlainMetadata, rename="camel", gc=False):
    labels: dict[str, str] = {}


class Resources(msgspec.Struct, gc=False):
    requests: dict[str, str | int] | None = None


class Port(msgspec.Struct, rename={"host_port": "hostPort", "host_ip": "hostIP"}, gc=False):
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = ""


class Container(msgspec.Struct, rename="camel", gc=False):
    resources: Resources = msgspec.field(default_factory=Resources)
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""


class Gate(msgspec.Struct, gc=False):
    name: str = ""


class PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int] | None = None
    resources: Resources | None = None
    scheduling_gates: tuple[Gate, ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class Condition(PlainCondition, gc=False):
    reason: str = ""
    message: str = ""


class PodStatus(msgspec.Struct, gc=False):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Pod(msgspec.Struct):
    metadata: Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def takes_room(self) -> bool:
        """It is on a node and has not ended."""
        return bool(self.spec.node_name) and self.status.phase not in ("Succeeded", "Failed")


class Taint(msgspec.Struct, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, gc=False):
    allocatable: dict[str, str | int] = {}


class Node(msgspec.Struct):
    metadata: Metadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
