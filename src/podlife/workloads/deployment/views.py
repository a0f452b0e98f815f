"""Views of Deployments."""

from __future__ import annotations

from functools import cached_property

import msgspec

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.client import DEPLOYMENTS
from podlife.podcontrol import Owner
from podlife.workloads.int_or_percent import IntOrPercent
from podlife.workloads.views import LabelSelectorDict, Status, Template, WorkloadMetadata

RECREATE = "Recreate"
ROLLING_UPDATE = "RollingUpdate"

# The API's value for no limit.
_NO_LIMIT = 2**31 - 1


class RollingUpdateDeployment(msgspec.Struct, rename="camel"):
    max_surge: IntOrPercent = 0
    max_unavailable: IntOrPercent = 0


class DeploymentStrategyView(msgspec.Struct, rename="camel"):
    type: str = ROLLING_UPDATE
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(msgspec.Struct, rename="camel"):
    replicas: int = 1
    paused: bool = False
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    strategy: DeploymentStrategyView = msgspec.field(default_factory=DeploymentStrategyView)
    selector: LabelSelectorDict = {}
    template: Template = {}

    @property
    def deadline_seconds(self) -> int | None:
        """The progress deadline; None if there is none."""
        seconds = self.progress_deadline_seconds
        return None if seconds == _NO_LIMIT else seconds

    @property
    def history_limit(self) -> int | None:
        """How many old ReplicaSets are kept; None for all."""
        limit = self.revision_history_limit
        return None if limit == _NO_LIMIT else limit


class Deployment(msgspec.Struct, dict=True):
    metadata: WorkloadMetadata
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: Status = {}

    @cached_property
    def selector(self) -> LabelSelector:
        """Read once: it may be as large as an object may be, and every orphan of the namespace is held against it."""
        return label_selector_from_dict(self.spec.selector)


def selector_of(deployment: Deployment) -> LabelSelector:
    """Raises ValueError for one that cannot be."""
    return deployment.selector


def owner_of_deployment(deployment: Deployment) -> Owner:
    metadata = deployment.metadata
    return Owner(
        DEPLOYMENTS.api_version,
        DEPLOYMENTS.kind,
        metadata.name,
        metadata.uid,
        metadata.namespace,
        metadata.resource_version,
        is_deleting=metadata.deletion_timestamp is not None,
    )
