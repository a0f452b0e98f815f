"""ResourceClaim and ResourceClaimTemplate: the devices that pods ask for. Neither spec can be changed."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from podlife.api.codec import Object
from podlife.api.defaults.fields import canonical, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.names import check_dns_subdomain, check_label_value
from podlife.apiserver.strategies.devices.allocations import (
    default_status,
    drop_deallocated,
    validate_claim_status,
)
from podlife.apiserver.strategies.devices.classes import validate_claim_configuration
from podlife.apiserver.strategies.devices.selectors import validate_selectors
from podlife.apiserver.strategies.devices.values import (
    MOST_CONFIGURATIONS,
    MOST_REQUESTS,
    TAINT_EFFECTS,
    RequestNames,
    dns_label,
    label_key,
    request_names,
    validate_list,
    validate_qualified_name,
    validate_references,
)
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
    devices, at, known = spec["devices"], f"{path}.devices", request_names(spec)
    if errors := bounded_expressions(f"{at}.requests", spec):
        return errors
    constraint, configuration = (
        partial(check, known) for check in (_validate_constraint, validate_claim_configuration)
    )
    return [
        *validate_list(
            devices["requests"], f"{at}.requests", _validate_request, MOST_REQUESTS, itemgetter("name")
        ),
        *validate_list(devices.get("constraints"), f"{at}.constraints", constraint, 32),
        *validate_list(devices.get("config"), f"{at}.config", configuration, MOST_CONFIGURATIONS),
    ]


def _validate_request(request: Object, path: str) -> FieldErrors:
    yield from dns_label(request["name"], f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    detail, at = "exactly one of `exactly` or `firstAvailable` is required", f"{path}.firstAvailable"
    if exactly is None and not alternatives:
        yield required(path, detail)
    elif exactly is not None and alternatives:
        yield bad_value(path, None, f"{detail}, but multiple fields are set")
    elif exactly is not None:
        yield from _validate_exact_request(exactly, f"{path}.exactly")
    else:
        yield from validate_list(alternatives, at, _validate_alternative, 8, itemgetter("name"))


def _validate_alternative(request: Object, path: str) -> FieldErrors:
    yield from dns_label(request["name"], f"{path}.name")
    yield from _validate_exact_request(request, path)


def _validate_exact_request(request: Object, path: str) -> FieldErrors:
    yield from require_at(f"{path}.deviceClassName", request["deviceClassName"], check_dns_subdomain)
    yield from validate_selectors(request, path)
    mode, count = request["allocationMode"], request.get("count", 0)
    if mode == "ExactCount":
        yield from positive(f"{path}.count", count)
    elif mode != "All":
        yield not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    elif count:
        yield bad_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    yield from validate_list(request.get("tolerations"), f"{path}.tolerations", _validate_toleration)


def _validate_toleration(toleration: Object, path: str) -> FieldErrors:
    if key := toleration.get("key"):
        yield from label_key(key, f"{path}.key")
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Exists" and value:
        yield bad_value(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from check_at(f"{path}.value", value, check_label_value)
    yield from required_choice(f"{path}.operator", operator, ("Equal", "Exists"))
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
