"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import default_resource_list
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, forbidden, required
from podlife.api.names import check_label_key
from podlife.api.quantity import NANOS, parse_nanos
from podlife.apiserver.strategies.core.resource_requirements import (
    is_quota_resource,
    may_overcommit,
    validate_container_resource,
    validate_quantity,
    validate_resource_name,
)
from podlife.apiserver.strategies.field_checks import check_at
from podlife.apiserver.strategies.strategy import Strategy

_OF_PODS = frozenset(
    {"pods"} | {f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory")}
)
# The resources that a quota of this scope may limit, of those that are Kubernetes' own.
_IN_SCOPE = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_WITH_VALUES = frozenset({"PriorityClass", "VolumeAttributesClass"})
_CONFLICTING = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class ResourceQuotaStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        spec, status = obj.setdefault("spec", {}), obj.setdefault("status", {})
        for part, field in ((spec, "hard"), (status, "hard"), (status, "used")):
            if amounts := part.get(field):
                default_resource_list(amounts)
            else:
                part.pop(field, None)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = [*_validate_amounts(spec.get("hard") or {}, "spec.hard")]
        scopes, selector = spec.get("scopes") or [], spec.get("scopeSelector")
        errors += _validate_scopes(spec, scopes)
        if selector is not None:
            errors += _validate_selector(spec, selector, "spec.scopeSelector.matchExpressions")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = (each["spec"].get("scopes") or [] for each in (new, old))
        if set(after) != set(before):
            return [bad_value("spec.scopes", after, "field is immutable")]
        return []

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        status = new["status"]
        return [
            error
            for field in ("hard", "used")
            for error in _validate_amounts(status.get(field) or {}, f"status.{field}")
        ]

    def warnings(self, obj: Object) -> list[str]:
        if obj["metadata"].get("resourceVersion"):
            # Only a create is warned about.
            return []
        hard, warnings = obj["spec"].get("hard") or {}, []
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            request = f"requests.{name}"
            if request not in hard and name in ("cpu", "memory"):
                request = name
            limit = f"limits.{name}"
            if request in hard and limit in hard and parse_nanos(hard[request]) > parse_nanos(hard[limit]):
                shown = f"{request} ({hard[request]}) should be less than {limit} ({hard[limit]})"
                warnings.append(f"ResourceQuota {shown}")
        return warnings


def _validate_amounts(amounts: Object, path: str) -> FieldErrors:
    for name, text in sorted(amounts.items()):
        at = f"{path}[{name}]"
        yield from validate_resource_name(at, name)
        if "/" not in name and not is_quota_resource(name):
            yield bad_value(at, name, "must be a standard resource for quota")
        yield from validate_quantity(at, name, text)


def _misapplied(spec: Object, scope: str) -> int:
    """How many limits of the quota the scope does not apply to."""
    names = filter(is_quota_resource, spec.get("hard") or {})
    return sum(name not in _IN_SCOPE[scope] for name in names) if scope in _IN_SCOPE else 0


def _validate_scopes(spec: Object, scopes: list[str]) -> FieldErrors:
    path = "spec.scopes"
    for scope in scopes:
        if scope not in _IN_SCOPE:
            yield bad_value(path, scopes, "unsupported scope")
        for _ in range(_misapplied(spec, scope)):
            yield bad_value(path, scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTING:
        if pair.issubset(scopes):
            yield bad_value(path, scopes, "conflicting scopes")


def _validate_selector(spec: Object, selector: Object, path: str) -> FieldErrors:
    scopes = set()
    for each in selector.get("matchExpressions") or ():
        scope, operator, values = each["scopeName"], each["operator"], each.get("values") or []
        if scope not in _IN_SCOPE:
            yield bad_value(f"{path}.scopeName", scope, "unsupported scope")
        for _ in range(_misapplied(spec, scope)):
            yield bad_value(path, selector, "unsupported scope applied to resource")
        if scope in _IN_SCOPE.keys() - _WITH_VALUES and operator != "Exists":
            yield bad_value(f"{path}.operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", detail)
        elif operator not in ("Exists", "DoesNotExist"):
            yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield bad_value(f"{path}.values", values, detail)
        scopes.add(scope)
    for pair in _CONFLICTING:
        if pair.issubset(scopes):
            yield bad_value(path, spec.get("scopes"), "conflicting scopes")


_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_LIMIT_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})


class LimitRangeStrategy(Strategy):
    creates_on_update = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        # As upstream stores an empty list.
        spec["limits"] = spec.get("limits") or None
        for item in spec["limits"] or ():
            if item["type"] == "Container":
                _fill(item, "default", "max")
                _fill(item, "defaultRequest", "default")
                _fill(item, "defaultRequest", "min")
            for field in _AMOUNTS:
                if amounts := item.get(field):
                    default_resource_list(amounts)
                else:
                    item.pop(field, None)

    def prepare_create(self, obj: Object) -> None:
        meta = obj["metadata"]
        if not meta.get("name"):
            meta["name"] = meta["uid"]

    def validate(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        seen = set()
        for index, item in enumerate(obj["spec"]["limits"] or ()):
            path = f"spec.limits[{index}]"
            errors += _validate_type(item["type"], f"{path}.type")
            if item["type"] in seen:
                errors.append(duplicate(f"{path}.type", item["type"]))
            seen.add(item["type"])
            errors += _validate_item(item, path)
        return errors


def _fill(item: Object, field: str, source: str) -> None:
    item[field] = {**(item.get(source) or {}), **(item.get(field) or {})}


def _validate_type(name: str, path: str) -> list[FieldError]:
    errors = check_at(path, name, check_label_key)
    if not errors and "/" not in name and name not in _LIMIT_TYPES:
        errors.append(bad_value(path, name, "must be a standard limit type or fully qualified"))
    return errors


def _validate_item(item: Object, path: str) -> FieldErrors:
    is_pod = item["type"] == "Pod"
    check_name = (
        validate_container_resource if is_pod or item["type"] == "Container" else validate_resource_name
    )
    names = set()
    for field in _AMOUNTS:
        if is_pod and field.startswith("default"):
            if item.get(field):
                yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in item.get(field) or ():
            yield from check_name(f"{path}.{field}[{name}]", name)
            names.add(name)
    is_sized = any("storage" in (item.get(field) or ()) for field in ("min", "max"))
    if item["type"] == "PersistentVolumeClaim" and not is_sized:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)
    for name in sorted(names):
        texts = {
            field: item[field][name]
            for field in _AMOUNTS
            if name in (item.get(field) or ()) and not (is_pod and field.startswith("default"))
        }
        yield from _validate_order(texts, name, path)


# Which amount may not exceed which, at which field that is reported, and with the amount of which.
_ORDER = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
_WORDS = {"defaultRequest": "default request"}


def _validate_order(texts: dict[str, str], name: str, path: str) -> FieldErrors:
    amounts = {field: parse_nanos(text) for field, text in texts.items()}
    for low, high, field, shown in _ORDER:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            word = "default limit" if (low, high) == ("defaultRequest", "default") else _WORDS.get(high, high)
            detail = f"{_WORDS.get(low, low)} value {texts[low]} is greater than {word} value {texts[high]}"
            yield bad_value(f"{path}.{field}[{name}]", texts[shown], detail)
    if (ratio := amounts.get("maxLimitRequestRatio")) is not None:
        at, text = f"{path}.maxLimitRequestRatio[{name}]", texts["maxLimitRequestRatio"]
        if ratio < NANOS:
            yield bad_value(at, text, f"ratio {text} is less than 1")
        least, most = amounts.get("min"), amounts.get("max")
        if least and most is not None and ratio * least > most * NANOS:
            yield bad_value(at, text, f"ratio {text} is greater than max/min = {most / least:f}")
    limit, request = texts.get("default"), texts.get("defaultRequest")
    if may_overcommit(name) or limit is None or request is None:
        return
    if amounts["default"] != amounts["defaultRequest"]:
        detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield bad_value(f"{path}.defaultRequest[{name}]", request, detail)
