"""DeviceClass, and the configuration for drivers that classes and claims contain."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object, encode
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, required, too_long
from podlife.apiserver.strategies.core.resource_requirements import is_extended_resource
from podlife.apiserver.strategies.devices.selectors import validate_selectors
from podlife.apiserver.strategies.devices.values import (
    MOST_CONFIGURATIONS,
    RequestNames,
    validate_list,
    validate_references,
)
from podlife.apiserver.strategies.field_checks import bounded_expressions, driver_name
from podlife.apiserver.strategies.strategy import Strategy

_LONGEST_PARAMETERS = 10 * 1024


class DeviceClassStrategy(Strategy):
    has_generation = True
    is_costly = True
    returns_deleted_object = True

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        if errors := bounded_expressions("spec.selectors", spec):
            return errors
        errors = [*validate_selectors(spec, "spec")]
        errors += validate_list(
            spec.get("config"), "spec.config", validate_configuration, MOST_CONFIGURATIONS
        )
        name = spec.get("extendedResourceName")
        if name is not None and not is_extended_resource(name):
            detail = "must be a valid extended resource name"
            errors.append(bad_value("spec.extendedResourceName", name, detail))
        return errors


def validate_configuration(configuration: Object, path: str) -> FieldErrors:
    if (opaque := configuration.get("opaque")) is None:
        yield required(f"{path}.opaque")
        return
    yield from driver_name(f"{path}.opaque.driver", opaque["driver"])
    yield from validate_raw(opaque.get("parameters"), f"{path}.opaque.parameters")


def validate_raw(value: Any, path: str) -> FieldErrors:
    """Any JSON object of at most ten kilobytes."""
    if value is None:
        yield required(path)
    elif len(encode(value)) > _LONGEST_PARAMETERS:
        yield too_long(path, _LONGEST_PARAMETERS)
    elif not isinstance(value, dict):
        yield bad_value(path, "<value omitted>", "must be a valid JSON object")


def validate_claim_configuration(known: RequestNames, configuration: Object, path: str) -> FieldErrors:
    yield from validate_references(known, configuration, path)
    yield from validate_configuration(configuration, path)
