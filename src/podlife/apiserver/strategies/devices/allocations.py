"""The status of a ResourceClaim: the devices allocated to it, for whom, and what their drivers report."""

from __future__ import annotations

import ipaddress
import re
from functools import partial
from operator import itemgetter

from podlife.api.codec import Object, encode
from podlife.api.defaults.fields import canonical, fill_empty
from podlife.api.field_errors import FieldErrors, bad_value, duplicate, forbidden, required, too_many
from podlife.apiserver.strategies.core.node_selection import validate_node_selector
from podlife.apiserver.strategies.devices.classes import validate_claim_configuration, validate_raw
from podlife.apiserver.strategies.devices.values import (
    MOST_CONFIGURATIONS,
    RequestNames,
    at_most,
    dns_label,
    label_key,
    request_names,
    validate_binding_conditions,
    validate_list,
    validate_pool_name,
    validate_reference,
)
from podlife.apiserver.strategies.field_checks import (
    driver_name,
    immutable,
    one_of,
    parse_cidr,
    required_choice,
    unique,
)

_MOST_CONDITIONS = 8
_STATUSES = frozenset({"False", "True", "Unknown"})
_is_uuid = re.compile("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII).fullmatch
_is_plain_uuid = re.compile("[0-9a-f]{32}", re.IGNORECASE | re.ASCII).fullmatch
_is_reason = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII).fullmatch
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def _results(status: Object) -> list[Object]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or []


def _device_id(device: Object) -> tuple[str, ...]:
    """A device, or the share of one."""
    return device["driver"], device["pool"], device["device"], device.get("shareID") or ""


def _shown(device_id: tuple[str, ...]) -> Object:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_id, strict=True))


def default_status(status: Object) -> None:
    for result in _results(status):
        amounts = result.get("consumedCapacity") or {}
        for name in amounts:
            canonical(amounts, name)
        for toleration in result.get("tolerations") or ():
            fill_empty(toleration, operator="Equal")
    for device in status.get("devices") or ():
        # Go writes it even if there are none.
        device.setdefault("conditions", None)


def drop_deallocated(new: Object, old: Object) -> None:
    """Remove what drivers reported of devices that are no longer allocated."""
    gone = set(map(_device_id, _results(old))) - set(map(_device_id, _results(new)))
    devices = [each for each in new.get("devices") or () if _device_id(each) not in gone]
    new.pop("devices", None)
    if devices:
        new["devices"] = devices


def validate_claim_status(new: Object, old: Object) -> FieldErrors:
    status, before, at = new["status"], old["status"], "status.reservedFor"
    consumers, allocation = status.get("reservedFor") or [], status.get("allocation")
    yield from validate_list(consumers, at, _validate_consumer, 256, itemgetter("uid"))
    allocated = frozenset(map(_device_id, _results(status)))
    yield from validate_list(status.get("devices"), "status.devices", partial(_validate_device, allocated))
    seen: set[tuple[str, ...]] = set()
    for index, name in enumerate(map(_device_id, status.get("devices") or ())):
        if name in seen:
            yield duplicate(f"status.devices[{index}]", _shown(name))
        seen.add(name)
    if consumers and allocation is None:
        yield forbidden(at, "may not be specified when `allocated` is not set")
    added = set(map(encode, consumers)) - set(map(encode, before.get("reservedFor") or ()))
    if added and allocation is not None and "deletionTimestamp" in new["metadata"]:
        detail = "while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden(at, f"new entries may not be added {detail}")
    if allocation is not None and before.get("allocation") is not None:
        yield from immutable("status.allocation", allocation, before["allocation"])
    elif allocation is not None:
        yield from _validate_allocation(request_names(new["spec"]), allocation, "status.allocation")


def _validate_consumer(consumer: Object, path: str) -> FieldErrors:
    for field in ("resource", "name", "uid"):
        if not consumer[field]:
            yield required(f"{path}.{field}")


def _validate_allocation(known: RequestNames, allocation: Object, path: str) -> FieldErrors:
    devices, at = allocation.get("devices") or {}, f"{path}.devices"
    yield from validate_list(devices.get("results"), f"{at}.results", partial(_validate_result, known), 32)
    check = partial(_validate_configuration, known)
    # Of the class and of the claim.
    yield from validate_list(devices.get("config"), f"{at}.config", check, 2 * MOST_CONFIGURATIONS)
    if (selector := allocation.get("nodeSelector")) is not None:
        yield from validate_node_selector(selector, f"{path}.nodeSelector")


def _validate_result(known: RequestNames, result: Object, path: str) -> FieldErrors:
    yield from validate_reference(known, result["request"], f"{path}.request")
    yield from _validate_device_name(result, path)
    yield from validate_binding_conditions(result, path)
    yield from _validate_share(result, path)


def _validate_configuration(known: RequestNames, configuration: Object, path: str) -> FieldErrors:
    yield from required_choice(f"{path}.source", configuration["source"], ("FromClaim", "FromClass"))
    yield from validate_claim_configuration(known, configuration, path)


def _validate_device_name(device: Object, path: str) -> FieldErrors:
    yield from driver_name(f"{path}.driver", device["driver"])
    yield from validate_pool_name(device["pool"], f"{path}.pool")
    yield from dns_label(device["device"], f"{path}.device")


def _validate_share(device: Object, path: str) -> FieldErrors:
    if (share := device.get("shareID")) is None:
        return
    at, problem = f"{path}.shareID", _uuid_problem(share)
    if problem:
        yield bad_value(at, share, f"error validating uid: {problem}")
    elif len(share) != 36 or share != share.lower():
        detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`"
        yield bad_value(at, share, f"{detail} with lowercase hexadecimal characters")


def _uuid_problem(text: str) -> str:
    """What Go's package for UUIDs finds wrong. It takes several forms of them."""
    length = len(text.encode())
    if length == 45 and text[:9].lower() != "urn:uuid:":
        return f'invalid urn prefix: "{text[:9]}"'
    if length == 38 and (text[0], text[-1]) != ("{", "}"):
        return "invalid bracketed UUID format"
    if length not in (32, 36, 38, 45):
        return f"invalid UUID length: {length}"
    bare = text[9:] if length == 45 else text[1:-1] if length == 38 else text
    return "" if (_is_plain_uuid if length == 32 else _is_uuid)(bare) else "invalid UUID format"


def _validate_device(allocated: frozenset[tuple[str, ...]], device: Object, path: str) -> FieldErrors:
    yield from _validate_device_name(device, path)
    yield from _validate_share(device, path)
    if (name := _device_id(device)) not in allocated:
        yield bad_value(path, _shown(name), "must be an allocated device in the claim")
    conditions, at = device.get("conditions") or [], f"{path}.conditions"
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(at, len(conditions), _MOST_CONDITIONS)
    yield from _validate_conditions(conditions, at)
    if (data := device.get("data")) is not None:
        yield from validate_raw(data, f"{path}.data")
    yield from _validate_network(device.get("networkData") or {}, f"{path}.networkData")


def _validate_conditions(conditions: list[Object], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, kind, reason = f"{path}[{index}]", condition["type"], condition["reason"]
        yield from unique(f"{at}.type", kind, seen)
        yield from label_key(kind, f"{at}.type")
        yield from one_of(f"{at}.status", condition["status"], _STATUSES)
        if (generation := condition.get("observedGeneration", 0)) < 0:
            detail = "must be greater than or equal to zero"
            yield bad_value(f"{at}.observedGeneration", generation, detail)
        if condition["lastTransitionTime"] is None:
            yield required(f"{at}.lastTransitionTime")
        if not reason:
            yield required(f"{at}.reason")
        elif not _is_reason(reason):
            yield bad_value(f"{at}.reason", reason, _REASON_RULE)
        yield from at_most(1024, reason, f"{at}.reason")
        yield from at_most(32 * 1024, condition["message"], f"{at}.message")


def _validate_network(data: Object, path: str) -> FieldErrors:
    yield from at_most(256, data.get("interfaceName", ""), f"{path}.interfaceName")
    yield from at_most(128, data.get("hardwareAddress", ""), f"{path}.hardwareAddress")
    yield from validate_list(data.get("ips"), f"{path}.ips", _validate_address, 16, str)


def _validate_address(text: str, path: str) -> FieldErrors:
    """An address with the length of its prefix, as Go writes it."""
    interface = parse_cidr(text)
    if interface is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield bad_value(path, text, detail)
        return
    address, bits = interface.ip, interface.network.prefixlen
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address, bits = address.ipv4_mapped, bits - 96 if bits > 32 else bits
    if text != (canonical_text := f"{address}/{bits}"):
        yield bad_value(path, text, f'must be in canonical form ("{canonical_text}")')
