"""Views of ReplicaSets."""

from __future__ import annotations

import msgspec

from podlife.workloads.views import LabelSelectorDict, Template, Workload


class ReplicaSetSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelectorDict = {}
    template: Template = {}


class ReplicaSet(Workload):
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)


def template_labels(replica_set: ReplicaSet) -> dict[str, str]:
    return (replica_set.spec.template.get("metadata") or {}).get("labels") or {}
