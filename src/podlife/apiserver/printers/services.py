"""Services and their endpoints."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, format_labels
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer

_SHOWN_ENDPOINTS = 3


def _service(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    cluster_ips = spec.get("clusterIPs", ())
    return [
        obj["metadata"].get("name", ""),
        spec.get("type", ""),
        cluster_ips[0] if cluster_ips else "<none>",
        _external_ip(obj),
        ",".join(map(_port, spec.get("ports", ()))) or "<none>",
        age(obj, now),
        format_labels(spec.get("selector")),
    ]


def _external_ip(obj: Object) -> str:
    spec = obj.get("spec", {})
    external = ",".join(spec.get("externalIPs", ()))
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return external or "<none>"
        case "LoadBalancer":
            balanced = _load_balancer(obj)
            return ",".join(filter(None, (balanced, external))) or "<pending>"
        case "ExternalName":
            name: str = spec.get("externalName", "")
            return name
    return "<unknown>"


def _load_balancer(obj: Object) -> str:
    ingress = obj.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in ingress}
    return ",".join(sorted(addresses - {""}))


def _port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _endpoints(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), _addresses(obj), age(obj, now)]


def _addresses(obj: Object) -> str:
    subsets = obj.get("subsets", ())
    if not subsets:
        return "<none>"
    found = [
        _host_port(address.get("ip", ""), port)
        for subset in subsets
        # A headless service may have no ports at all: only its addresses are shown.
        for port in subset.get("ports", ()) or (None,)
        for address in subset.get("addresses", ())
    ]
    shown = ",".join(found[:_SHOWN_ENDPOINTS])
    more = len(found) - _SHOWN_ENDPOINTS
    return f"{shown} + {more} more..." if more > 0 else shown


def _host_port(address: str, port: Object | None) -> str:
    if port is None:
        return address
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port.get('port', 0)}"


SERVICES = Printer(columns("services"), _service)
ENDPOINTS = Printer(columns("endpoints"), _endpoints)
