"""Views of pods and workloads that the workload controllers share.

All controllers use one view of pods, so pods are watched and cached once. Template and status of a workload stay
plain dictionaries: a template is lossless, and a status is compared as the server has it.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.podcontrol import InvalidInputError
from podlife.podcontrol import views as podcontrol

Template = dict[str, Any]
Status = dict[str, Any]
LabelSelectorDict = dict[str, Any]
WorkloadMetadata = podcontrol.OwnedPodMetadata
IntOrPercent = int | str

# Numbers beyond 64 bits are invalid.
_PERCENT = re.compile(r"([0-9]{1,18})%", re.ASCII)


class Workload(msgspec.Struct, dict=True):
    """An object that selects pods; each kind has its own spec."""

    metadata: WorkloadMetadata
    spec: Any = None
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Parsed once: it may be large, and every orphan of the namespace is matched against it. None selects nothing,
        an empty one everything. Raises ValueError for an invalid one."""
        return label_selector_from_dict(self.spec.selector)

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def valid_selector(self, problem: str) -> LabelSelector:
        """The selector. Raises InvalidInputError, which begins with `problem`, for an invalid one."""
        try:
            return self.selector
        except ValueError as error:
            raise InvalidInputError(f"{problem}: {error}") from None


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
    # The identity of a StatefulSet's pod.
    hostname: str = ""
    subdomain: str = ""
    volumes: tuple[Volume, ...] = ()
    # Names the target node of a DaemonSet's pod, before it is bound.
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
    metadata: WorkloadMetadata
    spec: WorkloadPodSpec = msgspec.field(default_factory=WorkloadPodSpec)
    status: WorkloadPodStatus = msgspec.field(default_factory=WorkloadPodStatus)


def scaled(value: IntOrPercent, total: int, *, round_up: bool, what: str = "") -> int:
    """The number, or the percentage of the total. Raises InvalidInputError, which names `what`, for anything else."""
    if isinstance(value, int):
        return value
    if (percent := _PERCENT.fullmatch(value)) is None:
        given = f"invalid value for {what}: {value[:40]!r}" if what else f"{value[:40]!r}"
        raise InvalidInputError(f"{given} is neither a number nor a percentage")
    hundredfold = int(percent[1]) * total
    return -(-hundredfold // 100) if round_up else hundredfold // 100
