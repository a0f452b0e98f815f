"""Jobs: defaults, the generated selector, and immutable fields."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, required
from podlife.api.labels import selector_matches, validate_label_selector
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.batch.job_spec import default_job_spec, validate_job_spec
from podlife.apiserver.strategies.batch.job_status import is_true, validate_job_status
from podlife.apiserver.strategies.core.pod.template import (
    drop_disabled_fields,
    shown_selector,
    sorted_labels,
    validate_same_selector,
)
from podlife.apiserver.strategies.core.pod.warnings import spec_warnings
from podlife.apiserver.strategies.field_checks import immutable, show_times
from podlife.apiserver.strategies.strategy import Strategy

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_IMMUTABLE = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MISMATCH = "`selector` does not match template `labels`"


class JobStrategy(Strategy):
    has_generation = True
    has_status = True
    orphans_by_default = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    )

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_job_spec(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            # One map for both, as upstream: the job gets the labels of its generated selector too.
            obj["metadata"]["labels"] = labels
        spec.setdefault("completionMode", "NonIndexed")
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", replacement)
        show_times(obj.setdefault("status", {}), "lastProbeTime", "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}
        if not obj["spec"]["manualSelector"]:
            _generate_selector(obj)
            # Upstream sets defaults again when it reads what it stored: the job has its template's labels.
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(obj["spec"]["template"]["metadata"]["labels"])
        drop_disabled_fields(obj["spec"]["template"]["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        drop_disabled_fields(new["spec"]["template"]["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _validate_generated_selector(obj)
        errors += validate_job_spec(spec, "spec")
        selector = spec.get("selector")
        labels = spec["template"]["metadata"].get("labels") or {}
        if selector is None:
            errors.append(required("spec.selector"))
        elif found := validate_label_selector(selector, "spec.selector"):
            errors += found
        if selector is None or not selector_matches(selector, labels):
            errors.append(bad_value("spec.template.metadata.labels", sorted_labels(labels), _MISMATCH))
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
        errors += validate_same_selector(new, old)
        errors += _validate_template(after, before, old.get("status") or {})
        for field in _IMMUTABLE:
            errors += immutable(f"spec.{field}", after.get(field), before.get(field))
        return errors

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_job_status(new, old)

    def warnings(self, obj: Object) -> list[str]:
        template = obj["spec"]["template"]["spec"]
        return job_name_warnings(obj) + spec_warnings(template, "spec.template.spec")


def job_name_warnings(obj: Object) -> list[str]:
    if not (problems := check_dns_label(obj["metadata"].get("name", ""))):
        return []
    advice = "this is used in Pod names and hostnames, which can result in surprising behavior"
    return [f"metadata.name: {advice}; a DNS label is recommended: [{' '.join(problems)}]"]


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


def _validate_generated_selector(job: Object) -> list[FieldError]:
    spec = job["spec"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    expected = dict.fromkeys(_UID_LABELS, uid) | dict.fromkeys(_NAME_LABELS, name)
    labels = spec["template"]["metadata"].get("labels") or {}
    errors: list[FieldError] = []
    for key, value in expected.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(at.replace(f"[{key}]", ""), f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(bad_value(at.replace(f"[{key}]", ""), sorted_labels(labels), f"must be '{value}'"))
    if not selector_matches(spec["selector"], expected):
        errors.append(
            bad_value("spec.selector", shown_selector(spec["selector"]), "`selector` not auto-generated")
        )
    return errors


def _validate_completions(new: Object, old: Object) -> list[FieldError]:
    completions = new.get("completions")
    if new.get("completionMode") != "Indexed":
        return immutable("spec.completions", completions, old.get("completions"))
    if completions is None or completions in (old.get("completions"), new.get("parallelism")):
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [bad_value("spec.completions", completions, detail)]


def _validate_template(new: Object, old: Object, status: Object) -> list[FieldError]:
    """Immutable, except that a suspended job without pods may still change its scheduling directives and
    resources."""
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
