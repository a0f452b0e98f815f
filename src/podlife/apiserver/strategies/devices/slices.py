"""ResourceSlice: the devices that a driver offers, on one node, on some, or on all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter

from podlife.api.codec import Object, format_time
from podlife.api.defaults.fields import canonical
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required, too_many
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_value
from podlife.api.quantity import NANOS, Quantity, parse_nanos, parse_quantity
from podlife.apiserver.strategies.core.node_selection import validate_node_selector
from podlife.apiserver.strategies.devices.values import (
    TAINT_EFFECTS,
    at_most,
    dns_label,
    label_key,
    validate_binding_conditions,
    validate_list,
    validate_map,
    validate_pool_name,
    validate_qualified_name,
)
from podlife.apiserver.strategies.field_checks import (
    check_at,
    driver_name,
    immutable,
    positive,
    require_at,
    required_choice,
)
from podlife.apiserver.strategies.strategy import Strategy

_MOST_DEVICES = 128
# If any of them has a taint or consumes counters.
_MOST_ADVANCED_DEVICES = 64
_MOST_COUNTERS = 32
_MOST_REQUEST_VALUES = 10
_LONGEST_QUALIFIED_NAME = 63 + 1 + 32
_PART = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_is_version = re.compile(
    rf"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){{2}}(?:-{_PART}(?:\.{_PART})*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
).fullmatch


class ResourceSliceStrategy(Strategy):
    has_generation = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        for device in obj["spec"].get("devices") or ():
            for capacity in (device.get("capacity") or {}).values():
                _default_capacity(capacity)
            for consumption in device.get("consumesCounters") or ():
                _default_counters(consumption)
        for counters in obj["spec"].get("sharedCounters") or ():
            _default_counters(counters)

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        for device in new["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", format_time(now))

    def prepare_create(self, obj: Object) -> None:
        _drop_disabled(obj["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        _drop_disabled(new["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        return [*_validate_slice(obj["spec"])]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = new["spec"], old["spec"]
        errors = immutable("spec.pool.name", after["pool"]["name"], before["pool"]["name"])
        for field in ("driver", "nodeName"):
            errors += immutable(f"spec.{field}", after.get(field), before.get(field))
        return errors

    def warnings(self, obj: Object) -> list[str]:
        driver = obj["spec"]["driver"]
        if driver == driver.lower():
            return []
        return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _default_capacity(capacity: Object) -> None:
    canonical(capacity, "value")
    if (policy := capacity.get("requestPolicy")) is None:
        return
    # Go writes it even if there is none.
    policy.setdefault("default", None)
    canonical(policy, "default")
    for field in ("min", "max", "step"):
        canonical(policy.get("validRange") or {}, field)
    for index, _ in enumerate(values := policy.get("validValues") or []):
        each = {"value": values[index]}
        canonical(each, "value")
        values[index] = each["value"]


def _default_counters(holder: Object) -> None:
    for counter in (holder.get("counters") or {}).values():
        canonical(counter, "value")


def _drop_disabled(spec: Object) -> None:
    """Remove fields of features that are off by default."""
    for device in spec.get("devices") or ():
        device.pop("nodeAllocatableResourceMappings", None)
        for attribute in (device.get("attributes") or {}).values():
            for field in ("bools", "ints", "strings", "versions"):
                attribute.pop(field, None)


def _validate_slice(spec: Object) -> FieldErrors:
    yield from driver_name("spec.driver", spec["driver"])
    pool, devices, counters = spec["pool"], spec.get("devices"), spec.get("sharedCounters")
    yield from validate_pool_name(pool["name"], "spec.pool.name")
    yield from positive("spec.pool.resourceSliceCount", pool["resourceSliceCount"])
    if (generation := pool["generation"]) < 0:
        yield bad_value("spec.pool.generation", generation, "must be greater than or equal to zero")
    yield from _validate_slice_nodes(spec)
    if devices is not None and counters is not None:
        yield bad_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    is_advanced = any(each.get("taints") or each.get("consumesCounters") for each in devices or ())
    most = _MOST_ADVANCED_DEVICES if is_advanced else _MOST_DEVICES
    check = partial(_validate_device, spec.get("perDeviceNodeSelection") is True)
    yield from validate_list(devices, "spec.devices", check, most, itemgetter("name"))
    check = partial(_validate_counters, "name")
    yield from validate_list(counters, "spec.sharedCounters", check, 8, itemgetter("name"))


def _validate_slice_nodes(spec: Object) -> FieldErrors:
    yield from _validate_nodes(spec, "spec", "must be either unset or set to a non-empty string")
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if "nodeSelector" in spec and len(terms) != 1:
        detail = "must have exactly one node selector term"
        yield bad_value("spec.nodeSelector.nodeSelectorTerms", terms, detail)
    yield from _unset_or_true(spec, "spec", "perDeviceNodeSelection")
    fields = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    detail = f"exactly one of {', '.join(map('`{}`'.format, fields))} is required"
    yield from _one_chosen(spec, "spec", fields, detail, ", but multiple fields are set")


def _validate_nodes(holder: Object, path: str, if_empty: str) -> FieldErrors:
    name, selector = holder.get("nodeName"), holder.get("nodeSelector")
    if name == "":
        yield bad_value(f"{path}.nodeName", name, if_empty)
    elif name is not None:
        yield from check_at(f"{path}.nodeName", name, check_dns_subdomain)
    if selector is not None:
        yield from validate_node_selector(selector, f"{path}.nodeSelector")
    yield from _unset_or_true(holder, path, "allNodes")


def _unset_or_true(holder: Object, path: str, field: str) -> FieldErrors:
    if holder.get(field) is False:
        yield bad_value(f"{path}.{field}", False, "must be either unset or set to true")


def _one_chosen(
    holder: Object, path: str, fields: Sequence[str], detail: str, of_many: str = ""
) -> FieldErrors:
    """One of the ways to name nodes is used."""
    chosen = [f"`{field}`" for field in fields if holder.get(field) not in (None, "", False)]
    if not chosen:
        yield required(path, detail)
    elif len(chosen) > 1:
        yield bad_value(path, f"{{{', '.join(chosen)}}}", f"{detail}{of_many}")


def _validate_device(names_nodes: bool, device: Object, path: str) -> FieldErrors:
    yield from dns_label(device["name"], f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    for what, count, most in (
        ("attributes and capacities", len(attributes) + len(capacity), 32),
        ("attribute values", len(attributes), 48),
    ):
        if count > most:
            yield bad_value(path, count, f"the total number of {what} must not exceed {most}")
    named = partial(validate_map, check_key=validate_qualified_name, longest_key=_LONGEST_QUALIFIED_NAME)
    yield from named(attributes, f"{path}.attributes", check=_validate_attribute)
    check = partial(_validate_capacity, device.get("allowMultipleAllocations") is True)
    yield from named(capacity, f"{path}.capacity", check=check)
    yield from validate_list(device.get("taints"), f"{path}.taints", _validate_taint, 16)
    consumed, check = f"{path}.consumesCounters", partial(_validate_counters, "counterSet")
    yield from validate_list(device.get("consumesCounters"), consumed, check, 2, itemgetter("counterSet"))
    yield from _validate_device_nodes(names_nodes, device, path)
    yield from validate_binding_conditions(device, path)


def _validate_device_nodes(names_nodes: bool, device: Object, path: str) -> FieldErrors:
    fields, only = ("nodeName", "nodeSelector", "allNodes"), "is set to true in the ResourceSlice spec"
    if names_nodes:
        yield from _validate_nodes(device, path, "must not be empty")
        detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
        yield from _one_chosen(device, path, fields, f"{detail} when `perDeviceNodeSelection` {only}")
    elif any(field in device for field in fields):
        detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection`"
        yield bad_value(path, None, f"{detail} {only}")


def _validate_attribute(attribute: Object, path: str) -> FieldErrors:
    version = attribute.get("version")
    if version is not None and not _is_version(version):
        detail = "must be a string compatible with semver.org spec 2.0.0"
        yield bad_value(f"{path}.version", version, detail)
    for field in ("string", "version"):
        yield from at_most(64, attribute.get(field) or "", f"{path}.{field}")
    if len(attribute) != 1:
        # As Go shows it.
        kinds = ("Int", "Bool", "String", "Version")
        shown = {f"{kind}Value": attribute.get(kind.lower()) for kind in kinds}
        shown |= {f"{kind}Values": None for kind in kinds}
        yield bad_value(path, shown if attribute else "", "exactly one value must be specified")


def _validate_taint(taint: Object, path: str) -> FieldErrors:
    yield from label_key(taint["key"], f"{path}.key")
    if value := taint.get("value"):
        yield from check_at(f"{path}.value", value, check_label_value)
    yield from required_choice(f"{path}.effect", taint["effect"], TAINT_EFFECTS)


def _validate_counters(name: str, holder: Object, path: str) -> FieldErrors:
    """A set of counters, or the part of one that a device consumes."""
    yield from require_at(f"{path}.{name}", holder[name], check_dns_label)
    at, counters = f"{path}.counters", holder.get("counters") or {}
    if not counters:
        yield required(at)
    elif len(counters) > _MOST_COUNTERS:
        yield too_many(at, len(counters), _MOST_COUNTERS)
    else:
        for counter in counters:
            yield from dns_label(counter, at)


def _validate_capacity(is_shared: bool, capacity: Object, path: str) -> FieldErrors:
    if (policy := capacity.get("requestPolicy")) is None:
        return
    at, default = f"{path}.requestPolicy", policy.get("default")
    values, bounds = policy.get("validValues") or [], policy.get("validRange")
    if not is_shared:
        yield forbidden(at, "allowMultipleAllocations must be true")
    elif values and bounds is not None:
        detail = 'cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(at, f"exactly one policy can be specified, {detail}")
    elif default is None:
        for field in ("validValues",) * bool(values) + ("validRange",) * (bounds is not None):
            yield required(f"{at}.default", f"required when {field} is defined")
    elif values:
        yield from _validate_values(default, capacity["value"], values, f"{at}.validValues")
    elif bounds is not None:
        yield from _validate_range(default, capacity["value"], bounds, f"{at}.validRange")


def _validate_values(default: str, most: str, values: Sequence[str], path: str) -> FieldErrors:
    amounts = list(map(parse_nanos, values))
    for index in range(1, len(values)):
        if amounts[index - 1] > amounts[index]:
            yield bad_value(f"{path}[{index}]", values[index], "values must be sorted in ascending order")

    def check(value: str, at: str) -> FieldErrors:
        if parse_nanos(value) > parse_nanos(most):
            yield bad_value(at, value, f"option is larger than capacity value: {most}")

    yield from validate_list(values, path, check, _MOST_REQUEST_VALUES, lambda each: str(_units(each)))
    if len(values) > _MOST_REQUEST_VALUES or parse_nanos(default) not in amounts:
        yield bad_value(path, default, "default value is not valid according to the requestPolicy")


def _validate_range(default: str, most: str, bounds: Object, path: str) -> FieldErrors:
    least, top, step = (bounds.get(field) for field in ("min", "max", "step"))
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if parse_nanos(least) > parse_nanos(most):
        yield bad_value(f"{path}.min", least, f"min is larger than capacity value: {most}")
    if parse_nanos(default) < parse_nanos(least):
        yield bad_value(f"{path}.min", default, f"default is less than min: {least}")
    if top is not None:
        if parse_nanos(least) > parse_nanos(top):
            yield bad_value(f"{path}.max", least, f"min is larger than max: {top}")
        if parse_nanos(top) > parse_nanos(most):
            yield bad_value(f"{path}.max", top, f"max is larger than capacity value: {most}")
        if parse_nanos(default) > parse_nanos(top):
            yield bad_value(f"{path}.max", default, f"default is more than max: {top}")
    if step is None:
        return
    first, second = parse_quantity(least), parse_quantity(step)
    added = Quantity(first.nanos + second.nanos, (first if first.nanos else second).style)
    if added.nanos > parse_nanos(most):
        detail = f"one step {added} is larger than capacity value: {most}"
        yield bad_value(f"{path}.step", step, detail)
    for value in (default, top):
        if value is not None and (_units(value) - _units(least)) % (_units(step) or 1):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            yield bad_value(f"{path}.step", value, detail)


def _units(text: str) -> int:
    """Whole units, rounded up, as Go's Value gives them."""
    return -(-parse_nanos(text) // NANOS)
