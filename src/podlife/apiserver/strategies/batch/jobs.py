"""Jobs: defaults, the generated selector, and immutable fields."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.defaults.fields import fill_absent
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, required
from podlife.api.labels import selector_matches, validate_label_selector
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.batch.job_spec import default_failure_policy, validate_job_spec
from podlife.apiserver.strategies.batch.job_status import is_true, validate_job_status
from podlife.apiserver.strategies.core.pod.template import (
    TemplatedStrategy,
    selector_mismatch,
    shown_selector,
    sorted_labels,
)
from podlife.apiserver.strategies.core.pod.warnings import name_warnings
from podlife.apiserver.strategies.field_checks import immutable

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_IMMUTABLE = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")


class JobStrategy(TemplatedStrategy):
    condition_times = ("lastProbeTime", "lastTransitionTime")
    orphans_by_default = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    )

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj["spec"]
        default_failure_policy(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            # One map for both, as upstream: the job gets the labels of its generated selector too.
            obj["metadata"]["labels"] = labels
        spec.setdefault("completionMode", "NonIndexed")
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        fill_absent(
            spec,
            parallelism=1,
            backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1,
            suspend=False,
            manualSelector=False,
            podReplacementPolicy="Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        )

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)
            # Upstream sets defaults again when it reads what it stored: the job has its template's labels.
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(obj["spec"]["template"]["metadata"]["labels"])

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = list(_validate_generated_selector(obj))
        errors += validate_job_spec(spec, "spec")
        selector = spec.get("selector")
        labels = spec["template"]["metadata"].get("labels") or {}
        if selector is None:
            errors.append(required("spec.selector"))
        errors += validate_label_selector(selector, "spec.selector")
        if selector is None or not selector_matches(selector, labels):
            errors.append(selector_mismatch(labels))
        completions, name = spec.get("completions") or 0, obj["metadata"].get("name", "")
        if spec["completionMode"] == "Indexed" and completions > 0:
            hostname = f"{name}-{completions - 1}"
            if check_dns_label(hostname):
                detail = f"will not able to create pod with invalid DNS label: {hostname}"
                errors.append(bad_value("metadata.name", name, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"], new["spec"]
        errors = _validate_completions(after, before)
        errors += super().validate_update(new, old)
        errors += _validate_template(after, before, old.get("status") or {})
        for field in _IMMUTABLE:
            errors += immutable(f"spec.{field}", after.get(field), before.get(field))
        return errors

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(validate_job_status(new, old))

    def warnings(self, obj: Object) -> list[str]:
        return name_warnings(obj, "Pod names and hostnames") + super().warnings(obj)


def _generate_selector(job: Object) -> None:
    """The job's own uid selects its pods: no two jobs share one."""
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    labels = job["spec"]["template"]["metadata"].setdefault("labels", {})
    for key in _NAME_LABELS:
        labels.setdefault(key, name)
    for key in _UID_LABELS:
        labels.setdefault(key, uid)
    selector = job["spec"].setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(_UID_LABELS[1], uid)


def _validate_generated_selector(job: Object) -> FieldErrors:
    spec = job["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    expected = dict.fromkeys(_UID_LABELS, uid) | dict.fromkeys(_NAME_LABELS, name)
    labels, at = spec["template"]["metadata"].get("labels") or {}, "spec.template.metadata.labels"
    for key, value in expected.items():
        if key not in labels:
            yield required(at, f"must be '{value}'")
        elif labels[key] != value:
            yield bad_value(at, sorted_labels(labels), f"must be '{value}'")
    if not selector_matches(spec["selector"], expected):
        yield bad_value("spec.selector", shown_selector(spec["selector"]), "`selector` not auto-generated")


def _validate_completions(new: Object, old: Object) -> list[FieldError]:
    completions = new.get("completions")
    if new.get("completionMode") != "Indexed":
        return immutable("spec.completions", completions, old.get("completions"))
    if completions is None or completions in (old.get("completions"), new.get("parallelism")):
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [bad_value("spec.completions", completions, detail)]


def _validate_template(new: Object, old: Object, status: Object) -> list[FieldError]:
    """Immutable, except for scheduling directives and resources while the job is suspended and has no pods."""
    before, after = old["template"], new["template"]
    if before == after:
        return []
    idle = "startTime" not in status or is_true(status, "Suspended")
    if not (old.get("suspend") and idle and not status.get("active")):
        return immutable("spec.template", after, before)
    changed = _without_directives(after["spec"])
    kept = _without_directives(before["spec"])
    return immutable("spec.template.spec", changed, kept)


def _without_directives(spec: Object) -> Object:
    left: dict[str, Any] = {
        field: value
        for field, value in spec.items()
        if field not in ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    }
    rest = {field: value for field, value in (spec.get("affinity") or {}).items() if field != "nodeAffinity"}
    if rest:
        left["affinity"] = rest
    for field in ("containers", "initContainers"):
        if field in left:
            left[field] = [
                {name: value for name, value in container.items() if name != "resources"}
                for container in left[field]
            ]
    return left
