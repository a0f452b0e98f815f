"""Deployments, ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import drop_empty_fields, fill_absent
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, not_supported, required
from podlife.apiserver.strategies.core.pod.template import (
    TemplatedStrategy,
    default_rolling_update,
    default_template,
    is_readable,
    is_zero,
    selector_mismatch,
    validate_at_most_all,
    validate_int_or_percent,
    validate_long_running,
    validate_selector,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import non_negative, show_times
from podlife.apiserver.strategies.strategy import keep_field


class DeploymentStrategy(TemplatedStrategy):
    kept_by_status = (("metadata", "labels"),)
    condition_times = ("lastTransitionTime", "lastUpdateTime")
    parts_of_replicas = ("updatedReplicas", "readyReplicas", "availableReplicas")
    counts = ("replicas", *parts_of_replicas, "unavailableReplicas", "terminatingReplicas")

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj["spec"]
        fill_absent(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        drop_empty_fields(spec, "paused", "minReadySeconds")
        default_rolling_update(spec.setdefault("strategy", {}), maxUnavailable="25%", maxSurge="25%")

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

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        keep_field(new["metadata"], old["metadata"], "labels")


def _validate_selected(spec: Object) -> FieldErrors:
    yield from validate_selector(spec, "deployment")
    if is_readable(spec.get("selector")):
        yield from validate_template(spec["template"], "spec.template")
        yield from validate_long_running(spec, "ReplicaSet")


def _validate_deployment_strategy(strategy: Object) -> FieldErrors:
    path, kind, rolling = "spec.strategy", strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden(
                f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"
            )
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield not_supported(path, shown, ("Recreate", "RollingUpdate"))
        return
    assert rolling is not None
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from validate_int_or_percent(f"{path}.rollingUpdate.maxUnavailable", unavailable)
    yield from validate_int_or_percent(f"{path}.rollingUpdate.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        yield bad_value(f"{path}.rollingUpdate.maxUnavailable", unavailable, detail)
    yield from validate_at_most_all(f"{path}.rollingUpdate.maxUnavailable", unavailable)


class ReplicaSetStrategy(TemplatedStrategy):
    first_status: Object = {"replicas": 0}
    parts_of_replicas = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    counts = ("replicas", *parts_of_replicas, "terminatingReplicas")

    def default(self, obj: Object) -> None:
        super().default(obj)
        obj["spec"].setdefault("replicas", 1)
        drop_empty_fields(obj["spec"], "minReadySeconds")

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = non_negative("spec.replicas", spec.get("replicas"))
        errors += non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        return [*errors, *_validate_selected(spec)]


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """The older form: its selector is a plain map, and defaults to the template's labels."""

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        obj.setdefault("status", {}).setdefault("replicas", 0)
        show_times(obj["status"], *self.condition_times)
        drop_empty_fields(spec, "minReadySeconds", "selector")
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
            errors.append(selector_mismatch(labels))
        errors += validate_template(template, "spec.template")
        return [*errors, *validate_long_running(spec, "ReplicationController")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return []
