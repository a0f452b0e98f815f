"""Views of PodDisruptionBudgets and of ReplicationControllers, of which only the scale is used."""

from __future__ import annotations

from functools import cached_property

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.workloads.int_or_percent import IntOrPercent
from podlife.workloads.views import LabelSelectorDict, Status, WorkloadMetadata


class BudgetSpec(msgspec.Struct, rename="camel"):
    selector: LabelSelectorDict | None = None
    min_available: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None


class Budget(msgspec.Struct, dict=True):
    metadata: WorkloadMetadata
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Without one it selects nothing, an empty one everything. Raises ValueError for one that cannot be."""
        return label_selector_from_dict(self.spec.selector)


class ReplicationControllerSpec(msgspec.Struct):
    replicas: int = 1


class ReplicationController(msgspec.Struct):
    metadata: WorkloadMetadata
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)
