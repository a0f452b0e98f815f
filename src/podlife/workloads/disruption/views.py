"""Views of PodDisruptionBudgets and of ReplicationControllers, of which only the scale is used."""

from __future__ import annotations

import msgspec

from podlife.workloads.views import IntOrPercent, LabelSelectorDict, Workload, WorkloadMetadata


class BudgetSpec(msgspec.Struct, rename="camel"):
    selector: LabelSelectorDict | None = None
    min_available: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None


class Budget(Workload):
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)


class ReplicationControllerSpec(msgspec.Struct):
    replicas: int = 1


class ReplicationController(msgspec.Struct):
    metadata: WorkloadMetadata
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)
