"""What is decoded of pods to own, rank and judge them; a controller that needs more adds it in a subclass."""

from __future__ import annotations

from datetime import datetime
from sys import intern

import msgspec

from podlife.api.views import Metadata

__all__ = [
    "ContainerStatus",
    "InitContainer",
    "Pod",
    "PodCondition",
    "PodMetadata",
    "PodSpec",
    "PodStatus",
]


class PodMetadata(Metadata, gc=False):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class InitContainer(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    # Only a sidecar has one of its own.
    restart_policy: str = ""


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    init_containers: tuple[InitContainer, ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class PodCondition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None

    def __post_init__(self) -> None:
        self.type, self.status = intern(self.type), intern(self.status)


class ContainerStatus(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    restart_count: int = 0


class PodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    def __post_init__(self) -> None:
        self.phase = intern(self.phase)


class Pod(msgspec.Struct, gc=False):
    metadata: PodMetadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)
