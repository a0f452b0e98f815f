"""Nodes (capacity, addresses and taints) and Leases."""

from __future__ import annotations

import ipaddress

from podlife.api.codec import Object
from podlife.api.defaults.fields import default_resource_list, drop_empty, drop_empty_fields, fill_absent
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, forbidden
from podlife.api.names import check_label_key, check_label_value
from podlife.apiserver.strategies.core.node_selection import TAINT_EFFECTS
from podlife.apiserver.strategies.core.resource_requirements import validate_quantity
from podlife.apiserver.strategies.field_checks import check_at, non_negative, required_choice, show_times
from podlife.apiserver.strategies.strategy import Strategy

_SPEC_KEEPS = frozenset({"configSource"})
_STATUS_KEEPS = frozenset({"config", "daemonEndpoints", "features", "nodeInfo"})
_INFO = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_FIXED_CIDR = 'node updates may not change podCIDR except from "" to valid'
_FIXED_PROVIDER = 'node updates may not change providerID except from "" to valid'


class NodeStrategy(Strategy):
    """A node may be created with its status, which the registering kubelet already knows."""

    has_status = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        drop_empty(spec, _SPEC_KEEPS)
        # One address range has two fields, like a pod's address.
        only, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
        if only and (not ranges or ranges[0] != only):
            spec["podCIDRs"] = [only]
        elif ranges:
            spec["podCIDR"] = ranges[0]
        for taint in spec.get("taints", ()):
            drop_empty_fields(taint, "value")
        _default_status(obj.setdefault("status", {}))

    def prepare_create(self, obj: Object) -> None:
        """Keeps everything: a node's status is not reset."""

    def validate(self, obj: Object) -> list[FieldError]:
        errors = list(_validate_taints(obj["spec"].get("taints", ())))
        errors += _validate_amounts(obj["status"])
        if not obj["metadata"].get("resourceVersion"):
            errors += _validate_ranges(obj["spec"].get("podCIDRs", []))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        before, after = old["spec"], new["spec"]
        ranges = before.get("podCIDRs")
        if ranges and ranges != after.get("podCIDRs"):
            errors.append(forbidden("spec.podCIDRs", _FIXED_CIDR))
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            errors.append(forbidden("spec.providerID", _FIXED_PROVIDER))
        return errors

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        _default_status(new.setdefault("status", {}))

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = list(_validate_amounts(new["status"]))
        seen: set[tuple[str, str]] = set()
        for index, address in enumerate(new["status"].get("addresses", ())):
            pair = address.get("type", ""), address.get("address", "")
            if pair in seen:
                shown = {"Type": pair[0], "Address": pair[1]}
                errors.append(duplicate(f"status.addresses[{index}]", shown))
            seen.add(pair)
        return errors


def _default_status(status: Object) -> None:
    drop_empty(status, _STATUS_KEEPS)
    for field in ("capacity", "allocatable"):
        if amounts := status.get(field):
            default_resource_list(amounts)
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
    fill_absent(status.setdefault("nodeInfo", {}), **dict.fromkeys(_INFO, ""))
    show_times(status, "lastHeartbeatTime", "lastTransitionTime")


def _validate_amounts(status: Object) -> FieldErrors:
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            yield from validate_quantity(f"status.{field}.{name}", name, amount)


def _validate_taints(taints: list[Object] | tuple[()]) -> FieldErrors:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        # The path is upstream's: taints are reported as if they were metadata.
        at = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        yield from check_at(f"{at}.key", key, check_label_key)
        if problems := check_label_value(value):
            yield bad_value(f"{at}.value", value, ";".join(problems))
        yield from required_choice(f"{at}.effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            yield duplicate(at, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def _validate_ranges(ranges: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    families: list[int] = []
    for index, text in enumerate(ranges):
        try:
            families.append(ipaddress.ip_network(text).version)
        except ValueError:
            errors.append(bad_value(f"spec.podCIDRs[{index}]", text, _CIDR_RULE))
    if len(ranges) > 1 and not errors and (len(ranges) > 2 or len(set(families)) < 2):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(bad_value("spec.podCIDRs", ranges, detail))
    return errors


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
        if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
            errors.append(bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        return errors + non_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
