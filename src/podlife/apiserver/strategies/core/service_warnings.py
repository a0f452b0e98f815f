"""Warnings about a Service: fields that are ignored or deprecated, and addresses in another than their usual form."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from podlife.api.codec import Object, encode
from podlife.apiserver.strategies.field_checks import is_ip

_TOPOLOGY_HINTS, _TOPOLOGY_MODE = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)


def service_warnings(service: Object) -> list[str]:
    """As upstream, in its order."""
    spec, found = service["spec"], list[str]()
    kind, addresses = spec["type"], spec.get("clusterIPs", ())
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if _TOPOLOGY_HINTS in (service["metadata"].get("annotations") or {}):
        found.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if kind != "ExternalName" and spec.get("clusterIP") not in (None, "", "None"):
        found += _all_ip_warnings("spec.clusterIPs", addresses)
    external = spec.get("externalIPs", ())
    if is_headless:
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": external,
            "SessionAffinity": spec["sessionAffinity"] != "None",
        }
        found += [
            f"spec.{field} is ignored for headless services" for field, is_set in ignored.items() if is_set
        ]
    found += _all_ip_warnings("spec.externalIPs", external)
    if external and not is_headless and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if address := spec.get("loadBalancerIP"):
        found += _ip_warnings("spec.loadBalancerIP", address)
    for index, block in enumerate(spec.get("loadBalancerSourceRanges", ())):
        found += _cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", block)
    if kind == "ExternalName" and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _all_ip_warnings(path: str, addresses: Iterable[str]) -> list[str]:
    return [
        warning for index, each in enumerate(addresses) for warning in _ip_warnings(f"{path}[{index}]", each)
    ]


def _ip_warnings(path: str, text: str) -> list[str]:
    if not is_ip(text):
        return []
    address, quoted = ipaddress.ip_address(text), encode(text).decode()
    if address.version == 4:
        return []
    if address.ipv4_mapped is not None:
        return [f'{path}: non-standard IP address {quoted} is invalid: use "{address.ipv4_mapped}"']
    if str(address) != text:
        return [f'{path}: IPv6 address {quoted} should be in RFC 5952 canonical format ("{address}")']
    return []


def _cidr_warnings(path: str, text: str) -> list[str]:
    # Validation leaves white space around it.
    try:
        block = ipaddress.ip_interface(text.strip())
    except ValueError:
        return []
    quoted, network = encode(text).decode(), block.network
    if block.ip != network.network_address:
        single = f"{block.ip}/{block.max_prefixlen}"
        return [
            f'{path}: CIDR value {quoted} is ambiguous in this context (should be "{network}" or "{single}"?)'
        ]
    if block.version == 6 and str(network) != text:
        return [f'{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ("{network}")']
    return []
