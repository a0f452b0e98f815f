"""The status of a node from its machine and runtime, its capacity, and whether it has to be sent. Pure.

Fields of other writers (images, attached volumes, devices, foreign conditions) are preserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from podlife.api.codec import Object
from podlife.api.quantity import NANOS, Quantity, parse_nanos, parse_quantity
from podlife.kubelet.node_status.conditions import Pressure, with_own_conditions
from podlife.kubelet.node_status.machine import MachineFacts
from podlife.kubelet.node_status.settings import NodeSettings

_HUGEPAGES = "hugepages-"
OWN_CONDITIONS = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"})


@dataclass(frozen=True, slots=True)
class Observation:
    """The last observation of the node. `problem` is why it is not ready; "" if it is."""

    facts: MachineFacts
    # As in a node's containerRuntimeVersion: process://1.2.
    runtime_version: str
    pressure: Pressure = field(default_factory=Pressure)
    problem: str = ""


def node_status(
    old: Mapping[str, Any], seen: Observation, settings: NodeSettings, now: str
) -> tuple[Object, list[str]]:
    """The complete new status, and the reasons of events for the change."""
    conditions, events = with_own_conditions(old.get("conditions") or (), seen.pressure, seen.problem, now)
    amounts = capacity(seen.facts, settings, old.get("capacity") or {})
    status: Object = {
        **old,
        "addresses": _addresses(settings),
        "capacity": amounts,
        "allocatable": allocatable(amounts, seen.facts, settings),
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.kubelet_port}},
        "nodeInfo": {**(old.get("nodeInfo") or {}), **_node_info(seen, settings)},
    }
    if settings.declared_features:
        status["declaredFeatures"] = list(settings.declared_features)
    return status, events


def _addresses(settings: NodeSettings) -> list[Object]:
    """kube-apiserver prefers the Hostname: without one that resolves, use an address."""
    hostname = settings.hostname or next(iter(settings.addresses), settings.name)
    addresses = settings.addresses or ((hostname,) if _is_address(hostname) else ())
    return [
        *({"type": "InternalIP", "address": address} for address in addresses),
        {"type": "Hostname", "address": hostname},
    ]


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _node_info(seen: Observation, settings: NodeSettings) -> Object:
    facts = seen.facts
    info: Object = {
        "architecture": facts.architecture,
        "bootID": facts.boot_id,
        "containerRuntimeVersion": seen.runtime_version,
        "kernelVersion": facts.kernel_version,
        "kubeProxyVersion": "",
        "kubeletVersion": settings.kubelet_version,
        "machineID": facts.machine_id,
        "operatingSystem": facts.operating_system,
        "osImage": facts.os_image,
        "systemUUID": facts.system_uuid,
    }
    if facts.swap_bytes:
        info["swap"] = {"capacity": facts.swap_bytes}
    return info


def is_same_status(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the server already has this status; heartbeat times are ignored, and declared features, which servers
    before v1.36 do not keep: they are sent with the next report."""
    return (
        old.get("addresses") == new["addresses"]
        and old.get("daemonEndpoints") == new["daemonEndpoints"]
        and all(_amounts(old.get(name)) == _amounts(new[name]) for name in ("capacity", "allocatable"))
        and {**_EMPTY_INFO, **(old.get("nodeInfo") or {})} == new["nodeInfo"]
        and _without_heartbeats(old.get("conditions") or ()) == _without_heartbeats(new["conditions"])
    )


_EMPTY_INFO = {"kubeProxyVersion": ""}


def _amounts(quantities: Mapping[str, str] | None) -> dict[str, int]:
    """A server may write the same quantity differently."""
    return {name: parse_nanos(str(text)) for name, text in (quantities or {}).items()}


def _without_heartbeats(conditions: Sequence[Mapping[str, Any]]) -> dict[str, Object]:
    return {
        each["type"]: {key: value for key, value in each.items() if key != "lastHeartbeatTime"}
        for each in conditions
    }


def status_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
    """A strategic merge patch of the differences, always with the kubelet's own conditions, which carry the heartbeat;
    concurrent changes of other controllers to other fields are not undone."""
    patch: Object = {"conditions": [each for each in new["conditions"] if each["type"] in OWN_CONDITIONS]}
    if old.get("addresses") != new["addresses"]:
        # Addresses are merged by type, so a second address of a type would replace the first.
        patch["addresses"] = [*new["addresses"], {"$patch": "replace"}]
    for name in ("capacity", "allocatable"):
        before = old.get(name) or {}
        if _amounts(before) != _amounts(new[name]):
            gone = {each: None for each in before if each.startswith(_HUGEPAGES) and each not in new[name]}
            patch[name] = {**new[name], **gone}
    for name in ("nodeInfo", "daemonEndpoints", "declaredFeatures"):
        if old.get(name) != new.get(name):
            patch[name] = new[name]
    return patch


def capacity(facts: MachineFacts, settings: NodeSettings, known: Mapping[str, str]) -> dict[str, str]:
    """`known` is the current capacity: resources of other reporters (devices) are preserved."""
    foreign = {name: amount for name, amount in known.items() if not name.startswith(_HUGEPAGES)}
    return {
        **foreign,
        "cpu": str(facts.cores),
        "ephemeral-storage": _binary(facts.storage_bytes),
        **{f"{_HUGEPAGES}{_binary(size)}": _binary(size * count) for size, count in facts.hugepages},
        "memory": _binary(facts.memory_bytes),
        "pods": str(settings.max_pods),
    }


def allocatable(amounts: Mapping[str, str], facts: MachineFacts, settings: NodeSettings) -> dict[str, str]:
    """The capacity without reservations; memory also without huge pages."""
    left = {name: parse_quantity(text) for name, text in amounts.items()}
    for name, kept in _kept_free(facts, settings).items():
        if name in left:
            left[name] = _less(left[name], kept)
    for name, text in settings.reserved.items():
        if name in left:
            left[name] = _less(left[name], parse_quantity(text))
    for size, count in facts.hugepages:
        left["memory"] = _less(left["memory"], Quantity(size * count * NANOS, "binary"))
    return {name: str(quantity) for name, quantity in left.items()}


def _kept_free(facts: MachineFacts, settings: NodeSettings) -> dict[str, Quantity]:
    thresholds = settings.thresholds
    kept: dict[str, Quantity] = {}
    if thresholds.memory_bytes is not None:
        kept["memory"] = Quantity(thresholds.memory_bytes * NANOS, "binary")
    if thresholds.storage_percent is not None:
        share = int(facts.storage_bytes * thresholds.storage_percent / 100)
        kept["ephemeral-storage"] = Quantity(share * NANOS, "binary")
    return kept


def _less(quantity: Quantity, other: Quantity) -> Quantity:
    return Quantity(max(0, quantity.nanos - other.nanos), quantity.style)


def _binary(amount: int) -> str:
    return str(Quantity(amount * NANOS, "binary"))
