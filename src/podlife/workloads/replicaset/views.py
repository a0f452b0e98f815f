"""Views of ReplicaSets, and of ReplicationControllers as ReplicaSets."""

from __future__ import annotations

from functools import cached_property

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.workloads.views import LabelSelectorDict, Template, Workload


class ReplicaSetSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelectorDict = {}
    template: Template = {}


class ReplicaSet(Workload):
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)


class ReplicationController(ReplicaSet):
    """The older form: its selector is a map of labels."""

    @cached_property
    def selector(self) -> LabelSelector:
        return label_selector_from_dict({"matchLabels": self.spec.selector} if self.spec.selector else None)


def template_labels(replica_set: ReplicaSet) -> dict[str, str]:
    return (replica_set.spec.template.get("metadata") or {}).get("labels") or {}
