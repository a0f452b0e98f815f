"""Views of DaemonSets and of the nodes they run on."""

from __future__ import annotations

from sys import intern

import msgspec

from podlife.api import views as api
from podlife.api.integers import parse_int64
from podlife.workloads.views import LabelSelectorDict, Template, Workload

ROLLING_UPDATE = "RollingUpdate"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class RollingUpdateDaemonSet(msgspec.Struct, rename="camel"):
    """Numbers, or percentages of the nodes that should run it."""

    max_unavailable: int | str = 1
    max_surge: int | str = 0


class DaemonSetUpdateStrategy(msgspec.Struct, rename="camel"):
    type: str = ROLLING_UPDATE
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(msgspec.Struct, rename="camel"):
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    selector: LabelSelectorDict | None = None
    template: Template = {}
    update_strategy: DaemonSetUpdateStrategy = msgspec.field(default_factory=DaemonSetUpdateStrategy)


class DaemonSet(Workload):
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)


class DaemonNodeMetadata(api.Metadata, gc=False):
    labels: dict[str, str] = {}


class DaemonNodeTaint(msgspec.Struct, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""

    def __post_init__(self) -> None:
        self.key, self.value, self.effect = intern(self.key), intern(self.value), intern(self.effect)


class DaemonNodeSpec(msgspec.Struct, gc=False):
    taints: tuple[DaemonNodeTaint, ...] = ()


class DaemonNode(msgspec.Struct, gc=False):
    """The fields that decide about daemon pods; heartbeats do not change them."""

    metadata: DaemonNodeMetadata
    spec: DaemonNodeSpec = msgspec.field(default_factory=DaemonNodeSpec)


def template_generation(daemon_set: DaemonSet) -> str:
    """The template generation, an annotation from an old API version; empty if missing."""
    text = daemon_set.metadata.annotations.get(_TEMPLATE_GENERATION, "")
    try:
        return str(parse_int64(text))
    except ValueError:
        return ""
