"""Views of Jobs. Template and status stay plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from podlife.api.codec import parse_time
from podlife.informer.indexes import Indexer
from podlife.podcontrol import BY_CONTROLLER, POD_INDEXERS
from podlife.workloads.pod_event_handler import OWNER_INDEXERS
from podlife.workloads.status import has_condition
from podlife.workloads.views import LabelSelectorDict, Status, Template, Workload

_OUR_NAME = "kubernetes.io/job-controller"


INDEXERS: Mapping[str, Indexer[Any]] = {**OWNER_INDEXERS, BY_CONTROLLER: POD_INDEXERS[BY_CONTROLLER]}
"""For the informer of Jobs, which several controllers share: by namespace, and by the CronJob that controls them."""


class ExitCodes(msgspec.Struct, rename="camel"):
    operator: str = ""
    values: tuple[int, ...] = ()
    container_name: str | None = None


class PodConditionPattern(msgspec.Struct):
    type: str = ""
    status: str = ""


class FailureRule(msgspec.Struct, rename="camel"):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] = ()


class PodFailurePolicy(msgspec.Struct):
    # The server writes null for none.
    rules: tuple[FailureRule, ...] | None = None


class SuccessRule(msgspec.Struct, rename="camel"):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(msgspec.Struct):
    rules: tuple[SuccessRule, ...] = ()


class JobSpec(msgspec.Struct, rename="camel"):
    parallelism: int = 1
    # None means a work queue: the pods coordinate among themselves.
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    active_deadline_seconds: int | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str = ""
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    managed_by: str = ""
    selector: LabelSelectorDict = {}
    template: Template = {}

    @property
    def is_indexed(self) -> bool:
        return self.completion_mode == "Indexed"

    @property
    def index_count(self) -> int:
        """Indexes of an indexed Job are below this."""
        return self.completions or 0

    @property
    def replaces_only_failed(self) -> bool:
        """Whether a terminating pod is replaced only when it has finished: it may still succeed or match a policy."""
        return self.pod_replacement_policy == "Failed" or self.pod_failure_policy is not None


class Job(Workload):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


def has_finished(job: Job) -> bool:
    conditions = job.status.get("conditions")
    return has_condition(conditions, "Complete") or has_condition(conditions, "Failed")


def is_managed_elsewhere(job: Job) -> bool:
    """Whether its `managedBy` names another controller."""
    return job.spec.managed_by not in ("", _OUR_NAME)


def start_time(status: Status) -> datetime | None:
    written = status.get("startTime")
    return parse_time(written) if written else None
