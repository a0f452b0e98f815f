"""Kinds of apps/v1 and batch/v1, and ReplicationControllers."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.durations import human_duration
from podlife.apiserver.printers.cells import (
    age,
    columns,
    condition_status,
    epoch,
    format_labels,
    format_selector,
    name,
    names_and_images,
    since,
)
from podlife.apiserver.resource import Printer


def _pod_spec(spec: Object) -> Object:
    found: Object = spec.get("template", {}).get("spec", {})
    return found


def _deployment(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
        format_selector(spec.get("selector"), empty="", broken="<invalid>"),
    ]


def _replica_counts(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        name(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
    ]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [*_replica_counts(obj, now), format_selector(obj.get("spec", {}).get("selector"))]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    # Its selector is a plain map of labels: the kind is older than selectors with expressions.
    return [*_replica_counts(obj, now), format_labels(obj.get("spec", {}).get("selector"))]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    ready = obj.get("status", {}).get("readyReplicas", 0)
    return [
        name(obj),
        f"{ready}/{spec.get('replicas', 0)}",
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
    ]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        name(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        format_labels(_pod_spec(spec).get("nodeSelector")),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
        format_selector(spec.get("selector")),
    ]


def _controller_revision(obj: Object, now: float) -> list[Any]:
    return [name(obj), _controller(obj), obj.get("revision", 0), age(obj, now)]


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return "<none>"


def _job(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    return [
        name(obj),
        _job_status(obj),
        _job_completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
        format_selector(spec.get("selector")),
    ]


def _job_status(obj: Object) -> str:
    # Upstream's order: a final state outranks deletion, which outranks a state in progress.
    for state in ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if state == "Terminating":
            if obj["metadata"].get("deletionTimestamp"):
                return state
        elif condition_status(obj, state) == "True":
            return state
    return "Running"


def _job_completions(obj: Object) -> str:
    spec = obj.get("spec", {})
    succeeded = obj.get("status", {}).get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Object, now: float) -> str:
    status = obj.get("status", {})
    if "startTime" not in status:
        return ""
    end = epoch(status["completionTime"]) if "completionTime" in status else now
    return human_duration(end - epoch(status["startTime"]))


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    job_spec = spec.get("jobTemplate", {}).get("spec", {})
    last = status.get("lastScheduleTime")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", "<none>"),
        # The column's type is boolean, yet kube-apiserver fills it with these words.
        str(spec["suspend"]) if "suspend" in spec else "<unset>",
        len(status.get("active", ())),
        since(last, now) if last else "<none>",
        age(obj, now),
        *names_and_images(_pod_spec(job_spec)),
        format_selector(job_spec.get("selector")),
    ]


def _pod_template(obj: Object, now: float) -> list[Any]:
    template = obj.get("template", {})
    labels = (template.get("metadata") or {}).get("labels")
    return [name(obj), *names_and_images(template.get("spec", {})), format_labels(labels)]


DEPLOYMENTS = Printer(columns("deployments.apps"), _deployment)
REPLICA_SETS = Printer(columns("replicasets.apps"), _replica_set)
REPLICATION_CONTROLLERS = Printer(columns("replicationcontrollers"), _replication_controller)
STATEFUL_SETS = Printer(columns("statefulsets.apps"), _stateful_set)
DAEMON_SETS = Printer(columns("daemonsets.apps"), _daemon_set)
CONTROLLER_REVISIONS = Printer(columns("controllerrevisions.apps"), _controller_revision)
JOBS = Printer(columns("jobs.batch"), _job)
CRON_JOBS = Printer(columns("cronjobs.batch"), _cron_job)
POD_TEMPLATES = Printer(columns("podtemplates"), _pod_template)
