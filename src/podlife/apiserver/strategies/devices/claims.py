"""ResourceClaim and ResourceClaimTemplate: the devices that pods ask for. Neither spec can be changed."""

from __future__ import annotations

from functools import partial

from podlife.api.codec import Object
from podlife.api.defaults.fields import canonical, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from podlife.apiserver.strategies.devices.allocations import (
    default_status,
    drop_deallocated,
    validate_claim_status,
)
from podlife.apiserver.strategies.devices.classes import (
    MOST_CONFIGURATIONS,
    validate_claim_configuration,
)
from podlife.apiserver.strategies.devices.lists import validate_list
from podlife.apiserver.strategies.devices.names import (
    MOST_REQUESTS,
    TAINT_EFFECTS,
    RequestNames,
    request_names,
    validate_qualified_name,
    validate_references,
)
from podlife.apiserver.strategies.devices.selectors import validate_selectors
from podlife.apiserver.strategies.field_checks import (
    bounded_expressions,
    check_at,
    immutable,
    one_of,
    positive,
    require_at,
    required_choice,
)
from podlife.apiserver.strategies.object_meta import validate_template_metadata
from podlife.apiserver.strategies.strategy import Strategy

_MOST_ALTERNATIVES = 8
_MOST_CONSTRAINTS = 32
_ALLOCATION_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")


class ResourceClaimStrategy(Strategy):
    has_status = True
    is_costly = True
    returns_deleted_object = True
    validates_updates_in_full = False
    kept_by_status = (("metadata",),)

    def default(self, obj: Object) -> None:
        _default_claim(obj["spec"])
        default_status(obj.setdefault("status", {}))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        return _validate_claim(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec", new["spec"], old["spec"])

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        drop_deallocated(new["status"], old["status"])

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*validate_claim_status(new, old)]


class ResourceClaimTemplateStrategy(Strategy):
    is_costly = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        _default_claim(obj["spec"]["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        template = obj["spec"]
        errors = [*validate_template_metadata(template.get("metadata") or {}, "spec.metadata")]
        return errors + _validate_claim(template["spec"], "spec.spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec", new["spec"], old["spec"])


def _default_claim(spec: Object) -> None:
    # Go writes it even if there are none.
    for request in spec["devices"].setdefault("requests", None) or ():
        exactly = request.get("exactly")
        for each in [exactly] * (exactly is not None) + (request.get("firstAvailable") or []):
            fill_empty(each, allocationMode="ExactCount")
            if each["allocationMode"] == "ExactCount":
                fill_empty(each, count=1)
            for toleration in each.get("tolerations") or ():
                fill_empty(toleration, operator="Equal")
            amounts = (each.get("capacity") or {}).get("requests") or {}
            for name in amounts:
                canonical(amounts, name)


def _validate_claim(spec: Object, path: str) -> list[FieldError]:
    if errors := bounded_expressions(f"{path}.devices.requests", spec):
        return errors
    devices, at, known = spec["devices"], f"{path}.devices", request_names(spec)
    requests = devices.get("requests") or ()
    errors = [
        *validate_list(
            requests,
            f"{at}.requests",
            _validate_request,
            most=MOST_REQUESTS,
            key=lambda request: request["name"],
        )
    ]
    constraints = devices.get("constraints") or ()
    errors += validate_list(
        constraints, f"{at}.constraints", partial(_validate_constraint, known), most=_MOST_CONSTRAINTS
    )
    check = partial(validate_claim_configuration, known)
    configuration = devices.get("config") or ()
    return [*errors, *validate_list(configuration, f"{at}.config", check, most=MOST_CONFIGURATIONS)]


def _validate_request(request: Object, path: str) -> FieldErrors:
    yield from check_at(f"{path}.name", request["name"], check_dns_label)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    detail = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        yield required(path, detail)
    elif exactly is not None and alternatives:
        yield bad_value(path, None, f"{detail}, but multiple fields are set")
    elif exactly is not None:
        yield from _validate_exact_request(exactly, f"{path}.exactly")
    else:
        yield from validate_list(
            alternatives,
            f"{path}.firstAvailable",
            _validate_alternative,
            most=_MOST_ALTERNATIVES,
            key=lambda each: each["name"],
        )


def _validate_alternative(request: Object, path: str) -> FieldErrors:
    yield from check_at(f"{path}.name", request["name"], check_dns_label)
    yield from _validate_exact_request(request, path)


def _validate_exact_request(request: Object, path: str) -> FieldErrors:
    yield from require_at(f"{path}.deviceClassName", request["deviceClassName"], check_dns_subdomain)
    yield from validate_selectors(request.get("selectors") or (), f"{path}.selectors")
    mode, count = request["allocationMode"], request.get("count", 0)
    if mode == "ExactCount":
        yield from positive(f"{path}.count", count)
    elif mode == "All":
        if count:
            yield bad_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    else:
        yield not_supported(f"{path}.allocationMode", mode, _ALLOCATION_MODES)
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from _validate_toleration(toleration, f"{path}.tolerations[{index}]")


def _validate_toleration(toleration: Object, path: str) -> FieldErrors:
    if key := toleration.get("key"):
        yield from check_at(f"{path}.key", key, check_label_key)
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Exists" and value:
        yield bad_value(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from check_at(f"{path}.value", value, check_label_value)
    yield from required_choice(f"{path}.operator", operator, _OPERATORS)
    yield from one_of(f"{path}.effect", toleration.get("effect") or None, TAINT_EFFECTS)


def _validate_constraint(known: RequestNames, constraint: Object, path: str) -> FieldErrors:
    yield from validate_references(known, constraint, path)
    fields = [field for field in ("matchAttribute", "distinctAttribute") if field in constraint]
    if not fields:
        detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        # Upstream's words, though no field is set.
        yield required(path, f"{detail}, but multiple fields are set")
        return
    at, name = f"{path}.{fields[0]}", constraint[fields[0]]
    yield from validate_qualified_name(name, at)
    if "/" not in name:
        yield bad_value(at, name, "a fully qualified name must be a domain and a name separated by a slash")
