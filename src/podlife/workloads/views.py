"""What the workload controllers decode of pods and of their own objects.

They share one view of pods, so that however many of them run, pods are watched and kept once. Of a workload's own
object the template and the status stay plain dictionaries: what a pod is made of is lossless, and a status is compared
as it stands on the server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from podlife.api import views as api
from podlife.podcontrol import views as podcontrol

__all__ = [
    "LabelSelectorDict",
    "Metadata",
    "Pod",
    "PodMetadata",
    "PodSpec",
    "PodStatus",
    "Status",
    "Template",
]

Template = dict[str, Any]
Status = dict[str, Any]
LabelSelectorDict = dict[str, Any]


class Metadata(api.Metadata):
    """Of a workload."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


PodMetadata = podcontrol.PodMetadata


class ClaimSource(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""


class Volume(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None


class NodeSelectorTerm(msgspec.Struct, rename="camel", gc=False):
    match_fields: tuple[dict[str, Any], ...] = ()


class NodeSelector(msgspec.Struct, rename="camel", gc=False):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(msgspec.Struct, rename="camel", gc=False):
    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: NodeAffinity | None = None


class PodSpec(podcontrol.PodSpec, rename="camel", gc=False):
    # What gives a pod of a StatefulSet its identity.
    hostname: str = ""
    subdomain: str = ""
    volumes: tuple[Volume, ...] = ()
    # Names the node that a pod of a DaemonSet is for, before it is bound.
    affinity: Affinity | None = None
    active_deadline_seconds: int | None = None


class Terminated(msgspec.Struct, rename="camel", gc=False):
    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(msgspec.Struct, rename="camel", gc=False):
    terminated: Terminated | None = None


class ContainerStatus(podcontrol.ContainerStatus, rename="camel", gc=False):
    state: ContainerState | None = None


class PodStatus(podcontrol.PodStatus, rename="camel", gc=False):
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(podcontrol.Pod, gc=False):
    metadata: PodMetadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)
