"""PriorityLevelConfigurations."""

from __future__ import annotations

from math import ceil, log2

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, not_supported, required
from podlife.apiserver.strategies.flowcontrol.defaults import MANDATORY_LEVELS
from podlife.apiserver.strategies.flowcontrol.flow_schemas import validate_conditions
from podlife.apiserver.strategies.strategy import Strategy

_TYPES = frozenset({"Exempt", "Limited"})
_RESPONSES = frozenset({"Queue", "Reject"})
_PRESERVED_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_DEFAULT_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
_DEFAULT_SHARES = 30
_MOST_QUEUES = 10_000_000
_MOST_ENTROPY_BITS = 60
_FIXED = {each["metadata"]["name"]: each["spec"] for each in MANDATORY_LEVELS}


class PriorityLevelStrategy(Strategy):
    has_generation = True
    has_status = True
    kept_by_status = (("metadata",),)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field, shares in (("exempt", 0), ("limited", _DEFAULT_SHARES)):
            if (part := spec.get(field)) is not None:
                part.setdefault("nominalConcurrencyShares", shares)
                part.setdefault("lendablePercent", 0)
        if (queuing := _response(spec).get("queuing")) is not None:
            for field, value in _DEFAULT_QUEUING.items():
                queuing[field] = queuing.get(field) or value

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        meta, spec = obj["metadata"], obj["spec"]
        errors = []
        if _PRESERVED_ZERO in (meta.get("annotations") or {}):
            errors.append(forbidden("metadata.annotations", f"annotation '{_PRESERVED_ZERO}' is forbidden"))
        errors += _validate_spec(meta.get("name", ""), spec)
        errors += _validate_fixed(meta.get("name", ""), spec)
        return [*errors, *validate_conditions(obj)]

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(validate_conditions(new))


def _response(spec: Object) -> Object:
    response: Object = (spec.get("limited") or {}).get("limitResponse") or {}
    return response


def _validate_spec(name: str, spec: Object) -> FieldErrors:
    type_ = spec.get("type", "")
    if (name == "exempt") != (type_ == "Exempt"):
        yield bad_value("spec.type", type_, "must be 'Exempt' if and only if `name` is 'exempt'")
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if type_ == "Exempt":
        if limited is not None:
            yield forbidden("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            yield from _validate_shares("spec.exempt", exempt)
    elif type_ == "Limited":
        if exempt is not None:
            yield forbidden("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            yield required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _validate_limited("spec.limited", limited)
    elif type_:
        yield not_supported("spec.type", type_, _TYPES)
    else:
        yield required("spec.type")


def _validate_fixed(name: str, spec: Object) -> FieldErrors:
    if name == "exempt" and spec | {"exempt": None} != _FIXED[name] | {"exempt": None}:
        detail = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
        yield bad_value("spec", spec, detail)
    elif name != "exempt" and name in _FIXED and spec != _FIXED[name]:
        yield bad_value("spec", spec, f"spec of '{name}' must equal the fixed value")


def _validate_number(path: str, part: Object, field: str) -> FieldErrors:
    if part.get(field, 0) < 0:
        yield bad_value(f"{path}.{field}", part[field], "must be a non-negative integer")


def _validate_percent(path: str, part: Object) -> FieldErrors:
    if not 0 <= part.get("lendablePercent", 0) <= 100:
        detail = "must be between 0 and 100, inclusive"
        yield bad_value(f"{path}.lendablePercent", part["lendablePercent"], detail)


def _validate_shares(path: str, exempt: Object) -> FieldErrors:
    yield from _validate_number(path, exempt, "nominalConcurrencyShares")
    yield from _validate_percent(path, exempt)


def _validate_limited(path: str, limited: Object) -> FieldErrors:
    yield from _validate_number(path, limited, "nominalConcurrencyShares")
    yield from _validate_response(f"{path}.limitResponse", limited.get("limitResponse") or {})
    yield from _validate_percent(path, limited)
    if (borrowed := limited.get("borrowingLimitPercent", 0)) < 0:
        detail = "if specified, must be a non-negative integer"
        yield bad_value(f"{path}.borrowingLimitPercent", borrowed, detail)


def _validate_response(path: str, response: Object) -> FieldErrors:
    type_, queuing = response.get("type", ""), response.get("queuing")
    if type_ == "Reject":
        if queuing is not None:
            yield forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif type_ == "Queue":
        if queuing is None:
            detail = "must not be empty if limited.limitResponse.type is Limited"
            yield required(f"{path}.queuing", detail)
        else:
            yield from _validate_queuing(f"{path}.queuing", queuing)
    elif type_:
        yield not_supported(f"{path}.type", type_, _RESPONSES)
    else:
        yield required(f"{path}.type")


def _validate_queuing(path: str, queuing: Object) -> FieldErrors:
    length, queues, hand = queuing["queueLengthLimit"], queuing["queues"], queuing["handSize"]
    if length <= 0:
        yield bad_value(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield bad_value(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield bad_value(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    path = f"{path}.handSize"
    if hand <= 0:
        yield bad_value(path, hand, "must be positive")
    elif hand > queues:
        yield bad_value(path, hand, f"should not be greater than queues ({queues})")
    elif ceil(log2(queues) * hand) > _MOST_ENTROPY_BITS:
        bits = f"required entropy bits of deckSize {queues} and handSize {hand}"
        yield bad_value(path, hand, f"{bits} should not be greater than {_MOST_ENTROPY_BITS}")
