"""Views of StatefulSets and of the volume claims of their pods."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.api.views import MetadataOnly
from podlife.client import STATEFUL_SETS
from podlife.podcontrol import Owner, owner_of
from podlife.workloads.views import LabelSelectorDict, Status, Template, WorkloadMetadata


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


class StatefulSet(msgspec.Struct, dict=True):
    metadata: WorkloadMetadata
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Read once: it may be as large as an object may be, and every orphan of the namespace is held against it."""
        return label_selector_from_dict(self.spec.selector)

    @property
    def is_ordered(self) -> bool:
        """Whether each pod waits for those before it."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def is_rolling(self) -> bool:
        return self.spec.update_strategy.type != "OnDelete"

    @property
    def partition(self) -> int:
        """How many pods, from the first on, stay as they are when the template changes."""
        rolling_update = self.spec.update_strategy.rolling_update
        return rolling_update.partition if rolling_update is not None else 0

    @property
    def wanted_ordinals(self) -> range:
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)


def selector_of(stateful_set: StatefulSet) -> LabelSelector:
    """Raises ValueError for one that cannot be."""
    return stateful_set.selector


def owner_of_set(stateful_set: StatefulSet) -> Owner:
    return owner_of(stateful_set, STATEFUL_SETS)
