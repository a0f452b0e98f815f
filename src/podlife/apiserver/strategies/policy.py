"""PodDisruptionBudgets."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import fill_absent
from podlife.api.field_errors import FieldError, bad_value
from podlife.api.labels import validate_label_selector
from podlife.apiserver.strategies.core.pod.template import (
    default_selector,
    shown_selector,
    validate_at_most_all,
    validate_int_or_percent,
)
from podlife.apiserver.strategies.field_checks import non_negative, one_of
from podlife.apiserver.strategies.strategy import Strategy

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_POLICIES = frozenset({"AlwaysAllow", "IfHealthyBudget"})


class PodDisruptionBudgetStrategy(Strategy):
    has_generation = True
    has_status = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        default_selector(obj.setdefault("spec", {}))
        fill_absent(obj.setdefault("status", {}), **dict.fromkeys(_COUNTS, 0))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            detail = "minAvailable and maxUnavailable cannot be both set"
            errors.append(bad_value("spec", _shown(spec), detail))
        for field in ("minAvailable", "maxUnavailable"):
            if (value := spec.get(field)) is not None:
                errors += validate_int_or_percent(f"spec.{field}", value)
                errors += validate_at_most_all(f"spec.{field}", value)
        errors += validate_label_selector(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        return errors + one_of("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for field in _COUNTS:
            errors += non_negative(f"status.{field}", (new.get("status") or {}).get(field))
        return errors


def _shown(spec: Object) -> Object:
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
