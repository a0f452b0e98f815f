"""Views of DaemonSets and of the nodes they run on."""

from __future__ import annotations

from functools import cached_property
from sys import intern

import msgspec

from podlife.api import views as api
from podlife.api.integers import parse_int64
from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.client import DAEMON_SETS
from podlife.podcontrol import Owner
from podlife.workloads.views import LabelSelectorDict, Status, Template, WorkloadMetadata

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


class DaemonSet(msgspec.Struct, dict=True):
    metadata: WorkloadMetadata
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Read once: it may be as large as an object may be, and every orphan of the namespace is held against it."""
        return label_selector_from_dict(self.spec.selector)


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
    """What decides whether daemon pods belong on it. A heartbeat changes none of it."""

    metadata: DaemonNodeMetadata
    spec: DaemonNodeSpec = msgspec.field(default_factory=DaemonNodeSpec)


def selector_of(daemon_set: DaemonSet) -> LabelSelector:
    """Raises ValueError for one that cannot be."""
    return daemon_set.selector


def owner_of_daemon_set(daemon_set: DaemonSet) -> Owner:
    metadata = daemon_set.metadata
    return Owner(
        DAEMON_SETS.api_version,
        DAEMON_SETS.kind,
        metadata.name,
        metadata.uid,
        metadata.namespace,
        metadata.resource_version,
        is_deleting=metadata.deletion_timestamp is not None,
    )


def template_generation(daemon_set: DaemonSet) -> str:
    """How often the template was changed, as an old version of the API counts it; empty where it says nothing."""
    text = daemon_set.metadata.annotations.get(_TEMPLATE_GENERATION, "")
    try:
        return str(parse_int64(text))
    except ValueError:
        return ""
