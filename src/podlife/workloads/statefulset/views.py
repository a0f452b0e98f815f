"""Views of StatefulSets and of the volume claims of their pods."""

from __future__ import annotations

from typing import Any

import msgspec

from podlife.api.views import MetadataOnly
from podlife.workloads.views import LabelSelectorDict, Template, Workload


class VolumeClaim(MetadataOnly, gc=False):
    """A PersistentVolumeClaim: its owners and whether it is being deleted."""


class RollingUpdateStatefulSet(msgspec.Struct, rename="camel"):
    # maxUnavailable is ignored: 1.36 updates one pod at a time unless a feature gate is enabled.
    partition: int = 0


class StatefulSetUpdateStrategy(msgspec.Struct, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdateStatefulSet | None = None


class RetentionPolicy(msgspec.Struct, rename="camel"):
    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class Ordinals(msgspec.Struct):
    start: int = 0


class StatefulSetSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    selector: LabelSelectorDict = {}
    template: Template = {}
    volume_claim_templates: list[dict[str, Any]] = []
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulSetUpdateStrategy = msgspec.field(default_factory=StatefulSetUpdateStrategy)
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: RetentionPolicy = msgspec.field(default_factory=RetentionPolicy)
    ordinals: Ordinals = msgspec.field(default_factory=Ordinals)


class StatefulSet(Workload):
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)

    @property
    def is_ordered(self) -> bool:
        """Whether each pod waits for its predecessors."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def is_rolling(self) -> bool:
        return self.spec.update_strategy.type != "OnDelete"

    @property
    def partition(self) -> int:
        """Number of pods, from the first on, that an update does not change."""
        rolling_update = self.spec.update_strategy.rolling_update
        return rolling_update.partition if rolling_update is not None else 0

    @property
    def wanted_ordinals(self) -> range:
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)
