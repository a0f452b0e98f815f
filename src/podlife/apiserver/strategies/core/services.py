"""Services, and Endpoints: the addresses behind a service.

Admission assigns cluster addresses: `needs_cluster_ip` says whether a service still lacks one, `assign_cluster_ip`
sets it. Node ports are kept as given.
"""

from __future__ import annotations

import ipaddress

from podlife.api.codec import Object
from podlife.api.defaults.fields import (
    drop_empty,
    drop_empty_fields,
    drop_empty_parts,
    fill_absent,
    fill_empty,
)
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, forbidden, required
from podlife.api.labels import validate_labels
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.pod.handlers import validate_port_reference
from podlife.apiserver.strategies.core.service_warnings import service_warnings
from podlife.apiserver.strategies.field_checks import (
    IP_RULE,
    PROTOCOLS,
    check_at,
    check_ip,
    is_ip,
    one_of,
    port_number,
    require_at,
    unique,
)
from podlife.apiserver.strategies.strategy import Strategy

_TYPES = frozenset({"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"})
_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_AFFINITIES = frozenset({"ClientIP", "None"})
_POLICIES = frozenset({"Cluster", "Local"})
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FAMILIES = frozenset({"IPv4", "IPv6"})
_FAMILY_POLICIES = frozenset({"PreferDualStack", "RequireDualStack", "SingleStack"})
_KEEPS = frozenset(
    {"allocateLoadBalancerNodePorts", "internalTrafficPolicy", "ipFamilyPolicy", "loadBalancerClass"}
    | {"sessionAffinityConfig", "trafficDistribution"}
)
_PORT_KEEPS = frozenset({"appProtocol", "port", "targetPort"})
_LONGEST_AFFINITY_SECONDS = 86400
_DEFAULT_AFFINITY_SECONDS = 10800


def _is_headless(spec: Object) -> bool:
    return spec.get("clusterIP") == "None"


def needs_cluster_ip(service: Object) -> bool:
    spec = service["spec"]
    return spec["type"] in _WITH_ADDRESS and not spec.get("clusterIP")


def assign_cluster_ip(service: Object, address: str) -> None:
    service["spec"]["clusterIP"] = address
    service["spec"]["clusterIPs"] = [address]


class ServiceStrategy(Strategy):
    has_status = True
    creates_on_update = True
    returns_deleted_object = True
    validate_name = staticmethod(check_dns_label)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        drop_empty(spec, _KEEPS)
        spec.setdefault("type", "ClusterIP")
        _default_affinity(spec)
        for port in spec.get("ports", ()):
            drop_empty(port, _PORT_KEEPS)
            fill_absent(port, protocol="TCP", port=0)
            fill_empty(port, targetPort=port["port"])
        if _is_reachable_from_outside(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] in _WITH_ADDRESS:
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _default_families(obj["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        before, after = old["spec"], new["spec"]
        if after["type"] in _WITH_ADDRESS and before["type"] in _WITH_ADDRESS:
            # Omitted means unchanged: clients that do not know the field must not lose addresses.
            for field in _ADDRESS_FIELDS:
                if field in before:
                    after.setdefault(field, before[field])
        _drop_outdated_fields(after, before)
        if after["type"] != "LoadBalancer":
            new["status"]["loadBalancer"] = {}
        _default_families(after)

    def warnings(self, obj: Object) -> list[str]:
        return service_warnings(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        ports = spec.get("ports", [])
        errors: list[FieldError] = []
        if not ports and not _is_headless(spec) and spec["type"] != "ExternalName":
            errors.append(required("spec.ports"))
        errors += _validate_type(spec)
        names: set[str] = set()
        for index, port in enumerate(ports):
            errors += _validate_port(port, len(ports) > 1, names, f"spec.ports[{index}]")
        errors += validate_labels(spec.get("selector") or {}, "spec.selector")
        errors += _validate_affinity(spec)
        if spec["type"] != "ExternalName":
            errors += _validate_addresses(spec)
        for index, address in enumerate(spec.get("externalIPs", ())):
            errors += validate_endpoint_ip(address, f"spec.externalIPs[{index}]", IP_RULE)
        errors += one_of("spec.type", spec["type"], _TYPES)
        errors += _validate_ports_together(spec, ports)
        return [*errors, *_validate_traffic(spec)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"], new["spec"]
        if before["type"] not in _WITH_ADDRESS or after["type"] not in _WITH_ADDRESS:
            return []
        old_addresses, new_addresses = before.get("clusterIPs", []), after.get("clusterIPs", [])
        if old_addresses[:1] in ([], new_addresses[:1]):
            return []
        return [bad_value("spec.clusterIPs[0]", new_addresses or None, "may not change once set")]


def _drop_outdated_fields(after: Object, before: Object) -> None:
    """What the new type has no use for, unless it was changed: the server may have set it, as a client that sends all
    fields back cannot know."""
    outdated: list[str] = []
    if before["type"] in _WITH_ADDRESS and after["type"] == "ExternalName":
        outdated += _ADDRESS_FIELDS
    if _is_load_balancer(before) and not _is_load_balancer(after):
        outdated += ("allocateLoadBalancerNodePorts", "loadBalancerClass")
    if _has_health_check(before) and not _has_health_check(after):
        outdated.append("healthCheckNodePort")
    if _is_reachable_from_outside(before) and not _is_reachable_from_outside(after):
        outdated.append("externalTrafficPolicy")
    for field in outdated:
        if after.get(field) == before.get(field):
            after.pop(field, None)
    if before["type"] in _WITH_NODE_PORTS and after["type"] not in _WITH_NODE_PORTS:
        known = {port.get("nodePort") for port in before.get("ports", ())}
        ports = after.get("ports", ())
        if all(port.get("nodePort") in known for port in ports if port.get("nodePort")):
            for port in ports:
                port.pop("nodePort", None)


def _is_load_balancer(spec: Object) -> bool:
    return bool(spec["type"] == "LoadBalancer")


def _has_health_check(spec: Object) -> bool:
    return _is_load_balancer(spec) and spec.get("externalTrafficPolicy") == "Local"


def _default_affinity(spec: Object) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _DEFAULT_AFFINITY_SECONDS}}


def _is_reachable_from_outside(spec: Object) -> bool:
    kind = spec["type"]
    return kind in _WITH_NODE_PORTS or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _default_families(spec: Object) -> None:
    """One address family, as on a cluster with a single range; headless services without selectors may use both."""
    if spec["type"] not in _WITH_ADDRESS:
        return
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    is_open = _is_headless(spec) and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
    if not spec.get("ipFamilies"):
        addresses = [text for text in spec.get("clusterIPs", ()) if is_ip(text)]
        spec["ipFamilies"] = ["IPv6" if ":" in text else "IPv4" for text in addresses] or ["IPv4"]
        if is_open and spec["ipFamilyPolicy"] != "SingleStack":
            spec["ipFamilies"] = ["IPv4", "IPv6"]


def _validate_type(spec: Object) -> FieldErrors:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        yield bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield forbidden(f"spec.{field}", "may not be set for ExternalName services")
        name = spec.get("externalName", "").removesuffix(".")
        yield from require_at("spec.externalName", name, check_dns_subdomain)


def _validate_port(port: Object, needs_name: bool, names: set[str], path: str) -> FieldErrors:
    name = port.get("name", "")
    if name:
        yield from check_at(f"{path}.name", name, check_dns_label)
        yield from unique(f"{path}.name", name, names)
    elif needs_name:
        yield required(f"{path}.name")
    yield from port_number(f"{path}.port", port["port"])
    yield from one_of(f"{path}.protocol", port["protocol"], PROTOCOLS)
    yield from validate_port_reference(f"{path}.targetPort", port["targetPort"])
    if (protocol := port.get("appProtocol")) is not None:
        yield from check_at(f"{path}.appProtocol", protocol, check_label_key)


def _validate_affinity(spec: Object) -> list[FieldError]:
    affinity = spec["sessionAffinity"]
    if affinity != "ClientIP":
        return one_of("spec.sessionAffinity", affinity, _AFFINITIES)
    seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if 0 < seconds <= _LONGEST_AFFINITY_SECONDS:
        return []
    detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY_SECONDS}"
    return [bad_value("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)]


def _validate_addresses(spec: Object) -> FieldErrors:
    path, first, addresses = "spec.clusterIPs", spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    if first and addresses and addresses[0] != first:
        yield bad_value(path, addresses, "first value must match `clusterIP`")
    if not first and addresses:
        yield bad_value(path, addresses, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies", ())):
        yield from one_of(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        yield from unique(f"spec.ipFamilies[{index}]", family, seen)
    yield from one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILY_POLICIES)
    bad = list(_bad_addresses(addresses))
    yield from bad
    if len(addresses) > 2:
        yield bad_value(path, addresses, "may only hold up to 2 values")
    if len(addresses) > 1 and not bad and len({":" in text for text in addresses}) < 2:
        yield bad_value(path, addresses, "may specify no more than one IP for each IP family")


def _bad_addresses(addresses: list[str]) -> FieldErrors:
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                yield bad_value("spec.clusterIPs", addresses, "'None' must be the first and only value")
        else:
            yield from check_at(f"spec.clusterIPs[{index}]", address, check_ip)


def _validate_ports_together(spec: Object, ports: list[Object]) -> FieldErrors:
    for index, port in enumerate(ports):
        if port.get("nodePort") and spec["type"] == "ClusterIP":
            yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    node_ports: set[tuple[str, int]] = set()
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        protocol, on_node = port["protocol"], port.get("nodePort", 0)
        if on_node and (protocol, on_node) in node_ports:
            yield duplicate(f"spec.ports[{index}].nodePort", on_node)
        node_ports.add((protocol, on_node))
        if (protocol, port["port"]) in numbers:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": port["port"]}
            yield duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0})
        numbers.add((protocol, port["port"]))


def _validate_traffic(spec: Object) -> FieldErrors:
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != "LoadBalancer":
        detail = "may only be used when `type` is 'LoadBalancer'"
        yield forbidden("spec.allocateLoadBalancerNodePorts", detail)
    outside = spec.get("externalTrafficPolicy", "")
    if not _is_reachable_from_outside(spec):
        if outside:
            detail = "may only be set for externally-accessible services"
            yield bad_value("spec.externalTrafficPolicy", outside, detail)
    else:
        yield from one_of("spec.externalTrafficPolicy", outside, _POLICIES)
    yield from one_of("spec.internalTrafficPolicy", spec.get("internalTrafficPolicy"), _POLICIES)
    yield from one_of("spec.trafficDistribution", spec.get("trafficDistribution"), _DISTRIBUTIONS)


class EndpointsStrategy(Strategy):
    creates_on_update = True

    def default(self, obj: Object) -> None:
        drop_empty_parts(obj.get("subsets"))
        drop_empty_fields(obj, "subsets")
        for subset in obj.get("subsets", ()):
            for port in subset.get("ports", ()):
                fill_empty(port, protocol="TCP")

    def validate(self, obj: Object) -> list[FieldError]:
        subsets = enumerate(obj.get("subsets", ()))
        return [error for index, subset in subsets for error in _validate_subset(subset, f"subsets[{index}]")]


def _validate_subset(subset: Object, path: str) -> FieldErrors:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield required(path, "must specify `addresses` or `notReadyAddresses`")
    for field in ("addresses", "notReadyAddresses"):
        for index, address in enumerate(subset.get(field, ())):
            yield from _validate_address(address, f"{path}.{field}[{index}]")
    ports = subset.get("ports", [])
    for index, port in enumerate(ports):
        at = f"{path}.ports[{index}]"
        if name := port.get("name", ""):
            yield from check_at(f"{at}.name", name, check_dns_label)
        elif len(ports) > 1:
            yield required(f"{at}.name")
        yield from port_number(f"{at}.port", port.get("port", 0))
        yield from one_of(f"{at}.protocol", port["protocol"], PROTOCOLS)


def _validate_address(address: Object, path: str) -> FieldErrors:
    text = address.get("ip", "")
    yield from check_at(f"{path}.ip", text, check_ip)
    if hostname := address.get("hostname"):
        yield from check_at(f"{path}.hostname", hostname, check_dns_label)
    if (node := address.get("nodeName")) is not None:
        yield from check_at(f"{path}.nodeName", node, check_dns_subdomain)
    yield from validate_endpoint_ip(text, f"{path}.ip", "must be a valid IP address")


def validate_endpoint_ip(text: str, path: str, rule: str) -> FieldErrors:
    if not is_ip(text):
        yield bad_value(path, text, rule)
        return
    address = ipaddress.ip_address(text)
    if address.is_unspecified:
        yield bad_value(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield bad_value(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield bad_value(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if text.startswith("224.0.0.") or text.lower().startswith("ff02:"):
        yield bad_value(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
