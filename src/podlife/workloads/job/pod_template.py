"""The pod template of a Job: with the tracking finalizer, and for an Indexed Job with the index as label, annotation,
hostname and environment variable. Pure: the Job's own template is not modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podlife.workloads.job.pods import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
    failures_of_index,
    ignored_failures_of_index,
)
from podlife.workloads.job.policies import rule_on_failure
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.views import Template, WorkloadPod

_ENVIRONMENT = "JOB_COMPLETION_INDEX"
# Maximum prefix of a generated name, before the server's five random characters.
_LONGEST_PREFIX = 58


@dataclass(frozen=True, slots=True)
class Blueprint:
    template: Template
    # Empty if it is the Job's name.
    generate_name: str = ""


def blueprint(context: SyncContext, index: int | None = None) -> Blueprint:
    """The blueprint of one pod, with this index if the Job is indexed."""
    template = context.spec.template
    metadata = dict(template.get("metadata") or {})
    finalizers = list(metadata.get("finalizers") or ())
    if TRACKING_FINALIZER not in finalizers:
        finalizers.append(TRACKING_FINALIZER)
    metadata["finalizers"] = finalizers
    if index is None:
        return Blueprint({**template, "metadata": metadata})
    name = context.job.metadata.name
    number = {COMPLETION_INDEX: str(index)}
    metadata["labels"] = {**(metadata.get("labels") or {}), **number}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **number,
        **_failures_so_far(context, index),
    }
    spec = {**(template.get("spec") or {}), "hostname": f"{name}-{index}"}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_index(container) for container in spec[kind]]
    return Blueprint({**template, "metadata": metadata, "spec": spec}, _prefix(name, index))


def _failures_so_far(context: SyncContext, index: int) -> dict[str, str]:
    if context.failed_indexes is None:
        return {}
    failures, ignored = _counts(context, context.held_back.get(index))
    written = {INDEX_FAILURES: str(failures)}
    if ignored:
        written[INDEX_IGNORED_FAILURES] = str(ignored)
    return written


def _counts(context: SyncContext, replaced: WorkloadPod | None) -> tuple[int, int]:
    if replaced is None:
        return 0, 0
    failures, ignored = failures_of_index(replaced), ignored_failures_of_index(replaced)
    if rule_on_failure(context.spec.pod_failure_policy, replaced).is_counted:
        return failures + 1, ignored
    return failures, ignored + 1


def _with_index(container: Mapping[str, Any]) -> dict[str, Any]:
    known = container.get("env") or []
    if any(each.get("name") == _ENVIRONMENT for each in known):
        return dict(container)
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*known, {"name": _ENVIRONMENT, "valueFrom": source}]}


def _prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix
