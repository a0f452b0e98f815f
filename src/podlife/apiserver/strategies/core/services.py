"""Services.

Admission assigns cluster addresses: `needs_cluster_ip` says whether a service still lacks one, `assign_cluster_ip`
sets it. Node ports are kept as given.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.empty_fields import drop_empty
from podlife.api.field_errors import FieldError, bad_value, duplicate, forbidden, not_supported, required
from podlife.api.labels import validate_labels
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.endpoints import PORT_RANGE, PROTOCOLS, validate_endpoint_ip
from podlife.apiserver.strategies.core.pod.handlers import validate_port_reference
from podlife.apiserver.strategies.core.pod.spec import IP_RULE
from podlife.apiserver.strategies.field_checks import is_ip, not_one_of, problems_at
from podlife.apiserver.strategies.strategy import Strategy

_TYPES = frozenset({"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"})
_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")
_AFFINITIES = frozenset({"ClientIP", "None"})
_POLICIES = frozenset({"Cluster", "Local"})
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FAMILIES = frozenset({"IPv4", "IPv6"})
_FAMILY_POLICIES = frozenset({"PreferDualStack", "RequireDualStack", "SingleStack"})
_KEEPS = frozenset(
    {
        "allocateLoadBalancerNodePorts",
        "internalTrafficPolicy",
        "ipFamilyPolicy",
        "loadBalancerClass",
        "sessionAffinityConfig",
        "trafficDistribution",
    }
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

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return check_dns_label(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        drop_empty(spec, _KEEPS)
        spec.setdefault("type", "ClusterIP")
        _default_affinity(spec)
        for port in spec.get("ports", ()):
            drop_empty(port, _PORT_KEEPS)
            port.setdefault("protocol", "TCP")
            port.setdefault("port", 0)
            if not port.get("targetPort"):
                port["targetPort"] = port["port"]
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
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if field in before:
                    after.setdefault(field, before[field])
        elif after["type"] == "ExternalName" and before["type"] in _WITH_ADDRESS:
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if after.get(field) == before.get(field):
                    after.pop(field, None)
        _default_families(after)

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
        if spec["type"] not in _TYPES:
            errors.append(not_supported("spec.type", spec["type"], _TYPES))
        errors += _validate_ports_together(spec, ports)
        return errors + _validate_traffic(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"], new["spec"]
        if before["type"] not in _WITH_ADDRESS or after["type"] not in _WITH_ADDRESS:
            return []
        old_addresses, new_addresses = before.get("clusterIPs", []), after.get("clusterIPs", [])
        if not old_addresses:
            return []
        if not new_addresses or old_addresses[0] != new_addresses[0]:
            detail = "may not change once set"
            return [bad_value("spec.clusterIPs[0]", new_addresses or None, detail)]
        return []


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
    return kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


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


def _validate_type(spec: Object) -> list[FieldError]:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        return [bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")]
    if kind != "ExternalName":
        return []
    errors = [
        forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        errors.append(required("spec.externalName"))
        return errors
    return errors + problems_at("spec.externalName", name, check_dns_subdomain(name))


def _validate_port(port: Object, needs_name: bool, names: set[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name", "")
    if name:
        errors += problems_at(f"{path}.name", name, check_dns_label(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    elif needs_name:
        errors.append(required(f"{path}.name"))
    if not 1 <= port["port"] <= 65535:
        errors.append(bad_value(f"{path}.port", port["port"], PORT_RANGE))
    if port["protocol"] not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS))
    errors += validate_port_reference(f"{path}.targetPort", port["targetPort"])
    if (protocol := port.get("appProtocol")) is not None:
        errors += problems_at(f"{path}.appProtocol", protocol, check_label_key(protocol))
    return errors


def _validate_affinity(spec: Object) -> list[FieldError]:
    affinity = spec["sessionAffinity"]
    if affinity not in _AFFINITIES:
        return [not_supported("spec.sessionAffinity", affinity, _AFFINITIES)]
    if affinity == "None":
        return []
    seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if 0 < seconds <= _LONGEST_AFFINITY_SECONDS:
        return []
    detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY_SECONDS}"
    return [bad_value("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)]


def _validate_addresses(spec: Object) -> list[FieldError]:
    path, first, addresses = "spec.clusterIPs", spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    errors: list[FieldError] = []
    if first and addresses and addresses[0] != first:
        errors.append(bad_value(path, addresses, "first value must match `clusterIP`"))
    if not first and addresses:
        errors.append(bad_value(path, addresses, "must be empty when `clusterIP` is not specified"))
    families = spec.get("ipFamilies", [])
    seen: set[str] = set()
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
        if family in seen:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy", "SingleStack")
    if policy not in _FAMILY_POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    bad = _bad_addresses(addresses)
    errors += bad
    if len(addresses) > 2:
        errors.append(bad_value(path, addresses, "may only hold up to 2 values"))
    if len(addresses) > 1 and not bad and len({":" in text for text in addresses}) < 2:
        errors.append(bad_value(path, addresses, "may specify no more than one IP for each IP family"))
    return errors


def _bad_addresses(addresses: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                detail = "'None' must be the first and only value"
                errors.append(bad_value("spec.clusterIPs", addresses, detail))
        elif not is_ip(address):
            errors.append(bad_value(f"spec.clusterIPs[{index}]", address, IP_RULE))
    return errors


def _validate_ports_together(spec: Object, ports: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, port in enumerate(ports):
        if port.get("nodePort") and spec["type"] == "ClusterIP":
            detail = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden(f"spec.ports[{index}].nodePort", detail))
    node_ports: set[tuple[str, int]] = set()
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        protocol, on_node = port["protocol"], port.get("nodePort", 0)
        if on_node and (protocol, on_node) in node_ports:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", on_node))
        node_ports.add((protocol, on_node))
        if (protocol, port["port"]) in numbers:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": port["port"]}
            errors.append(duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0}))
        numbers.add((protocol, port["port"]))
    return errors


def _validate_traffic(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != "LoadBalancer":
        detail = "may only be used when `type` is 'LoadBalancer'"
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", detail))
    outside = spec.get("externalTrafficPolicy", "")
    if not _is_reachable_from_outside(spec):
        if outside:
            detail = "may only be set for externally-accessible services"
            errors.append(bad_value("spec.externalTrafficPolicy", outside, detail))
    elif outside not in _POLICIES:
        errors.append(not_supported("spec.externalTrafficPolicy", outside, _POLICIES))
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _POLICIES:
        errors.append(not_supported("spec.internalTrafficPolicy", inside, _POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(not_one_of("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors
