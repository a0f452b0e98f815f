"""Views of ReplicaSets."""

from __future__ import annotations

from functools import cached_property

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.workloads.views import LabelSelectorDict, Status, Template, WorkloadMetadata


class ReplicaSetSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelectorDict = {}
    template: Template = {}


class ReplicaSet(msgspec.Struct, dict=True):
    metadata: WorkloadMetadata
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Read once: it may be as large as an object may be, and every orphan of the namespace is held against it."""
        return label_selector_from_dict(self.spec.selector)


def selector_of(replica_set: ReplicaSet) -> LabelSelector:
    """Raises ValueError for one that cannot be."""
    return replica_set.selector


def template_labels(replica_set: ReplicaSet) -> dict[str, str]:
    return (replica_set.spec.template.get("metadata") or {}).get("labels") or {}
