"""Deployments, ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, forbidden, required
from podlife.apiserver.strategies.core.pod.template import (
    default_selector,
    default_template,
    drop_disabled_fields,
    is_readable,
    is_zero,
    sorted_labels,
    validate_at_most_all,
    validate_counts,
    validate_int_or_percent,
    validate_long_running,
    validate_same_selector,
    validate_selector,
    validate_template,
)
from podlife.apiserver.strategies.core.pod.warnings import spec_warnings
from podlife.apiserver.strategies.field_checks import non_negative, not_one_of, show_times
from podlife.apiserver.strategies.strategy import Strategy


class TemplatedStrategy(Strategy):
    """What all controllers with a template at `spec.template` share."""

    has_generation = True
    has_status = True
    first_status: Object = {}
    condition_times: tuple[str, ...] = ("lastTransitionTime",)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_selector(spec)
        default_template(spec.setdefault("template", {}))
        for field, value in self.first_status.items():
            obj.setdefault("status", {}).setdefault(field, value)
        show_times(obj.setdefault("status", {}), *self.condition_times)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict(self.first_status)
        if template := obj["spec"].get("template"):
            drop_disabled_fields(template["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        if template := new["spec"].get("template"):
            drop_disabled_fields(template["spec"])

    def warnings(self, obj: Object) -> list[str]:
        template = obj["spec"].get("template")
        return spec_warnings(template["spec"], "spec.template.spec") if template else []


class DeploymentStrategy(TemplatedStrategy):
    condition_times = ("lastTransitionTime", "lastUpdateTime")

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        for field in ("paused", "minReadySeconds"):
            if not spec.get(field, True):
                del spec[field]
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        # Annotations are copied to the deployment's replica sets: a change of them must be observed.
        if (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {}):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = non_negative("spec.replicas", spec.get("replicas"))
        errors += _validate_selected(spec)
        errors += _validate_deployment_strategy(spec["strategy"])
        for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            errors += non_negative(f"spec.{field}", spec.get(field))
        deadline = spec["progressDeadlineSeconds"]
        if deadline <= spec.get("minReadySeconds", 0):
            detail = "must be greater than minReadySeconds"
            errors.append(bad_value("spec.progressDeadlineSeconds", deadline, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_same_selector(new, old)

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        new["metadata"].pop("labels", None)
        if "labels" in old["metadata"]:
            new["metadata"]["labels"] = old["metadata"]["labels"]

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
        errors = validate_counts(new["status"], (*fields, "terminatingReplicas"))
        errors += validate_sums(new["status"], ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + validate_collisions(new, old)


def _validate_selected(spec: Object) -> list[FieldError]:
    errors = validate_selector(spec, "deployment")
    if is_readable(spec.get("selector")):
        errors += validate_template(spec["template"], "spec.template")
        errors += validate_long_running(spec, "ReplicaSet")
    return errors


def _validate_deployment_strategy(strategy: Object) -> list[FieldError]:
    path, kind, rolling = "spec.strategy", strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(f"{path}.rollingUpdate", detail)]
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        return [not_one_of(path, shown, ("Recreate", "RollingUpdate"))]
    assert rolling is not None
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    errors = validate_int_or_percent(f"{path}.rollingUpdate.maxUnavailable", unavailable)
    errors += validate_int_or_percent(f"{path}.rollingUpdate.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(bad_value(f"{path}.rollingUpdate.maxUnavailable", unavailable, detail))
    return errors + validate_at_most_all(f"{path}.rollingUpdate.maxUnavailable", unavailable)


def validate_sums(status: Object, parts: tuple[str, ...], ready: str = "readyReplicas") -> list[FieldError]:
    """No part is greater than the whole, and available replicas are ready."""
    whole = status.get("replicas", 0)
    errors = [
        bad_value(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas")
        for field in parts
        if status.get(field, 0) > whole
    ]
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        detail = f"cannot be greater than {ready}"
        errors.append(bad_value("status.availableReplicas", available, detail))
    return errors


def validate_collisions(new: Object, old: Object) -> list[FieldError]:
    count, before = (obj.get("status", {}).get("collisionCount") for obj in (new, old))
    if before is not None and (count is None or count < before):
        return [bad_value("status.collisionCount", count or 0, "cannot be decremented")]
    return []


class ReplicaSetStrategy(TemplatedStrategy):
    first_status: Object = {"replicas": 0}

    def default(self, obj: Object) -> None:
        super().default(obj)
        obj["spec"].setdefault("replicas", 1)
        if not obj["spec"].get("minReadySeconds", True):
            del obj["spec"]["minReadySeconds"]

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = non_negative("spec.replicas", spec.get("replicas"))
        errors += non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        return errors + _validate_selected(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_same_selector(new, old)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        errors = validate_counts(new["status"], ("replicas", *parts, "terminatingReplicas"))
        return errors + validate_sums(new["status"], parts)


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """The older form: its selector is a plain map, and defaults to the template's labels."""

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        obj.setdefault("status", {}).setdefault("replicas", 0)
        show_times(obj["status"], *self.condition_times)
        for field in ("minReadySeconds", "selector"):
            if not spec.get(field, True):
                del spec[field]
        if (template := spec.get("template")) is None:
            return
        default_template(template)
        if labels := template["metadata"].get("labels"):
            spec.setdefault("selector", dict(labels))
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        errors += non_negative("spec.replicas", spec.get("replicas"))
        selector, template = spec.get("selector"), spec.get("template")
        if not selector:
            errors.append(required("spec.selector"))
        if template is None:
            errors.append(required("spec.template"))
            return errors
        labels = template["metadata"].get("labels") or {}
        if selector and not selector.items() <= labels.items():
            detail = "`selector` does not match template `labels`"
            errors.append(bad_value("spec.template.metadata.labels", sorted_labels(labels), detail))
        errors += validate_template(template, "spec.template")
        return errors + validate_long_running(spec, "ReplicationController")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []
