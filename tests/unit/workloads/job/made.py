"""Jobs and pods for tables of cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from podlife.workloads.job.pods import COMPLETION_INDEX, INDEX_FAILURES, TRACKING_FINALIZER, PodBackoff
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.job.views import Job
from podlife.workloads.views import WorkloadPod
from tests.kit import objects

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
_numbers = count(1)


def ago(seconds: float) -> str:
    return objects.ago(NOW, seconds=seconds)


def job(status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any) -> Job:
    about = {"name": "work", "namespace": "default", "uid": "job-uid", **(metadata or {})}
    template = {"metadata": {"labels": {"app": "work"}}, "spec": {"containers": [{"name": "main"}]}}
    made = {"metadata": about, "spec": {"template": template, **spec}, "status": status or {}}
    return msgspec.convert(made, Job)


def ended(code: int, seconds_ago: float = 0, name: str = "main") -> dict[str, Any]:
    """The status of a container."""
    return objects.ended(code, NOW - timedelta(seconds=seconds_ago), name=name)


def pod(
    phase: str = "Running",
    *,
    index: int | str | None = None,
    failures: int | None = None,
    is_going: bool = False,
    is_tracked: bool = True,
    **status: Any,
) -> WorkloadPod:
    """The `uid` of the n-th is `pod-n`; `metadata` and `spec` may be given too."""
    number = next(_numbers)
    annotations: dict[str, str] = {} if index is None else {COMPLETION_INDEX: str(index)}
    if failures is not None:
        annotations[INDEX_FAILURES] = str(failures)
    metadata = {
        "name": f"work-{number}",
        "namespace": "default",
        "uid": f"pod-{number}",
        "creationTimestamp": ago(60),
        "finalizers": [TRACKING_FINALIZER] if is_tracked else [],
        "annotations": annotations,
        **status.pop("metadata", {}),
    }
    if is_going:
        metadata |= {"deletionTimestamp": ago(0), "deletionGracePeriodSeconds": 30}
    made = {"metadata": metadata, "spec": status.pop("spec", {}), "status": {"phase": phase, **status}}
    return msgspec.convert(made, WorkloadPod)


def context(made: Job, *pods: WorkloadPod, backoff: PodBackoff | None = None) -> SyncContext:
    return SyncContext(made, pods, backoff or PodBackoff(), NOW)
