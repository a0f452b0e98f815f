"""Views of pods and workload metadata that the workload controllers share.

All controllers use one view of pods, so pods are watched and cached once. Template and status of a workload stay
plain dictionaries: a template is lossless, and a status is compared as the server has it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from podlife.api import views as api
from podlife.podcontrol import views as podcontrol

Template = dict[str, Any]
Status = dict[str, Any]
LabelSelectorDict = dict[str, Any]


class WorkloadMetadata(api.Metadata):
    """Of a workload."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


PodMetadata = podcontrol.OwnedPodMetadata


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


class WorkloadPodSpec(podcontrol.OwnedPodSpec, rename="camel", gc=False):
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


class WorkloadContainerState(msgspec.Struct, rename="camel", gc=False):
    terminated: Terminated | None = None


class WorkloadContainerStatus(podcontrol.OwnedContainerStatus, rename="camel", gc=False):
    state: WorkloadContainerState | None = None


class WorkloadPodStatus(podcontrol.OwnedPodStatus, rename="camel", gc=False):
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[WorkloadContainerStatus, ...] = ()
    init_container_statuses: tuple[WorkloadContainerStatus, ...] = ()


class WorkloadPod(podcontrol.OwnedPod, gc=False):
    metadata: PodMetadata
    spec: WorkloadPodSpec = msgspec.field(default_factory=WorkloadPodSpec)
    status: WorkloadPodStatus = msgspec.field(default_factory=WorkloadPodStatus)
