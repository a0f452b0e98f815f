"""Nodes and Leases."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node(obj: Object, now: float) -> list[Any]:
    status = obj.get("status", {})
    info = status.get("nodeInfo", {})
    kernel = info.get("kernelVersion") or "<unknown>"
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        obj["metadata"].get("name", ""),
        _status(obj),
        _roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _status(obj: Object) -> str:
    # Of several conditions of one type the last counts, unlike elsewhere.
    ready = "Unknown"
    for condition in obj.get("status", {}).get("conditions", ()):
        if condition.get("type") == "Ready":
            ready = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if obj.get("spec", {}).get("unschedulable") else ready


def _roles(obj: Object) -> str:
    roles = set()
    for key, value in obj["metadata"].get("labels", {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(status: Object, address_type: str) -> str:
    for address in status.get("addresses", ()):
        if address.get("type") == address_type:
            found: str = address.get("address", "")
            return found
    return "<none>"


def _lease(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("spec", {}).get("holderIdentity", ""), age(obj, now)]


NODES = Printer(columns("nodes"), _node)
LEASES = Printer(columns("leases.coordination.k8s.io"), _lease)
