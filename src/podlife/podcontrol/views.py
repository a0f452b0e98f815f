"""Views of pods that pod control needs; a controller that needs more fields subclasses them."""

from __future__ import annotations

from datetime import datetime
from sys import intern

import msgspec

from podlife.api.views import Metadata


class OwnedPodMetadata(Metadata, gc=False):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class InitContainer(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    # Only sidecars have one.
    restart_policy: str = ""


class OwnedPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    init_containers: tuple[InitContainer, ...] = ()

    def __post_init__(self) -> None:
        self.node_name = intern(self.node_name)


class OwnedPodCondition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None

    def __post_init__(self) -> None:
        self.type, self.status = intern(self.type), intern(self.status)


class OwnedContainerStatus(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    restart_count: int = 0


class OwnedPodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    conditions: tuple[OwnedPodCondition, ...] = ()
    container_statuses: tuple[OwnedContainerStatus, ...] = ()
    init_container_statuses: tuple[OwnedContainerStatus, ...] = ()

    def __post_init__(self) -> None:
        self.phase = intern(self.phase)


class OwnedPod(msgspec.Struct, gc=False):
    metadata: OwnedPodMetadata
    spec: OwnedPodSpec = msgspec.field(default_factory=OwnedPodSpec)
    status: OwnedPodStatus = msgspec.field(default_factory=OwnedPodStatus)
