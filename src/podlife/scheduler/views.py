"""Views of pods and nodes: what a pod requests and what a node offers."""

from __future__ import annotations

from datetime import datetime
from sys import intern
from typing import Any

import msgspec

from podlife.api.views import Condition, Metadata
from podlife.api.volume_binding import PodVolume


class SchedulerMetadata(Metadata, rename="camel", gc=False):
    labels: dict[str, str] = {}


class ResourceRequirements(msgspec.Struct, gc=False):
    requests: dict[str, str | int] | None = None


class ContainerPort(msgspec.Struct, rename={"host_port": "hostPort", "host_ip": "hostIP"}, gc=False):
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = ""


class SchedulerContainer(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class SchedulingGate(msgspec.Struct, gc=False):
    name: str = ""


class SchedulerPodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: tuple[dict[str, Any], ...] = ()
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    containers: tuple[SchedulerContainer, ...] = ()
    init_containers: tuple[SchedulerContainer, ...] = ()
    overhead: dict[str, str | int] | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    resource_claims: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class SchedulerCondition(Condition, gc=False):
    reason: str = ""
    message: str = ""


class ReportedContainer(msgspec.Struct, rename="camel", gc=False):
    """What the node says of a container's resources."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int] | None = None


class SchedulerPodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[SchedulerCondition, ...] = ()
    container_statuses: tuple[ReportedContainer, ...] = ()
    init_container_statuses: tuple[ReportedContainer, ...] = ()


class SchedulerPod(msgspec.Struct):
    metadata: SchedulerMetadata
    spec: SchedulerPodSpec = msgspec.field(default_factory=SchedulerPodSpec)
    status: SchedulerPodStatus = msgspec.field(default_factory=SchedulerPodStatus)

    @property
    def uses_resources(self) -> bool:
        """Whether it is on a node and has not ended."""
        return bool(self.spec.node_name) and self.status.phase not in ("Succeeded", "Failed")

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    def condition(self, type_: str) -> SchedulerCondition | None:
        return next((each for each in self.status.conditions if each.type == type_), None)


class BudgetSpec(msgspec.Struct):
    selector: dict[str, Any] | None = None


class BudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Any] = {}


class Budget(msgspec.Struct):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class SchedulerTaint(msgspec.Struct, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class SchedulerNodeSpec(msgspec.Struct, gc=False):
    taints: tuple[SchedulerTaint, ...] = ()
    unschedulable: bool = False


class SchedulerNodeStatus(msgspec.Struct, gc=False):
    allocatable: dict[str, str | int] = {}


class SchedulerNode(msgspec.Struct):
    metadata: SchedulerMetadata
    spec: SchedulerNodeSpec = msgspec.field(default_factory=SchedulerNodeSpec)
    status: SchedulerNodeStatus = msgspec.field(default_factory=SchedulerNodeStatus)
