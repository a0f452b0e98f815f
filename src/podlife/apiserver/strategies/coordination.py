"""Leases."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value
from podlife.apiserver.strategies.field_checks import non_negative
from podlife.apiserver.strategies.strategy import Strategy


class LeaseStrategy(Strategy):
    creates_on_update = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        # Behind a feature gate that v1.36 disables.
        spec.pop("strategy", None)
        spec.pop("preferredHolder", None)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            errors.append(bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        errors += non_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
        return errors
