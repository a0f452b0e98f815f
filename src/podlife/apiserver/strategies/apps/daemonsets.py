"""DaemonSets."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import drop_empty_fields
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.integers import parse_int64
from podlife.api.labels import is_empty_selector, selector_matches, validate_label_selector
from podlife.apiserver.strategies.core.pod.template import (
    TemplatedStrategy,
    default_rolling_update,
    is_zero,
    selector_mismatch,
    validate_at_most_all,
    validate_int_or_percent,
    validate_long_running,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import non_negative

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(TemplatedStrategy):
    first_status: Object = {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
    counts = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    )

    def default(self, obj: Object) -> None:
        super().default(obj)
        # As upstream's conversion does: so it belongs to who creates the object.
        obj["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")
        spec = obj["spec"]
        drop_empty_fields(spec, "minReadySeconds")
        spec.setdefault("revisionHistoryLimit", 10)
        default_rolling_update(spec.setdefault("updateStrategy", {}), maxUnavailable=1, maxSurge=0)

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        _set_template_generation(obj, 1)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        generation = _template_generation(old)
        changed = new["spec"]["template"] != old["spec"]["template"]
        _set_template_generation(new, generation + 1 if changed else generation)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _validate_selector(spec)
        errors += validate_template(spec["template"], "spec.template")
        errors += validate_long_running(spec, "DaemonSet")
        errors += non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        errors += _validate_update_strategy(spec["updateStrategy"])
        return errors + non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _template_generation(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
    try:
        return parse_int64(text)
    except ValueError:
        return 0


def _set_template_generation(obj: Object, generation: int) -> None:
    # A field of the first version of the API that lives on as an annotation.
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = str(generation)


def _validate_selector(spec: Object) -> list[FieldError]:
    selector = spec.get("selector")
    labels = spec["template"]["metadata"].get("labels") or {}
    errors = validate_label_selector(selector, "spec.selector")
    # An absent selector matches nothing.
    if selector is None or (not errors and not selector_matches(selector, labels)):
        errors.append(selector_mismatch(labels))
    if selector is not None and is_empty_selector(selector):
        errors.append(bad_value("spec.selector", selector, "empty selector is invalid for daemonset"))
    return errors


def _validate_update_strategy(strategy: Object) -> FieldErrors:
    path, kind = "spec.updateStrategy", strategy["type"]
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        yield not_supported(path, shown, ("RollingUpdate", "OnDelete"))
        return
    rolling = strategy["rollingUpdate"]
    for field in ("maxUnavailable", "maxSurge"):
        yield from validate_int_or_percent(f"{path}.rollingUpdate.{field}", rolling[field])
    for field in ("maxUnavailable", "maxSurge"):
        yield from validate_at_most_all(f"{path}.rollingUpdate.{field}", rolling[field])
    unavailable, surge = not is_zero(rolling["maxUnavailable"]), not is_zero(rolling["maxSurge"])
    if unavailable and surge:
        detail = "may not be set when maxUnavailable is non-zero"
        yield bad_value(f"{path}.rollingUpdate.maxSurge", rolling["maxSurge"], detail)
    elif not unavailable and not surge:
        yield required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0")
