"""Endpoints: the addresses behind a service."""

from __future__ import annotations

import ipaddress

from podlife.api.codec import Object
from podlife.api.defaults.empty_fields import drop_empty_parts
from podlife.api.field_errors import FieldError, bad_value, not_supported, required
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.apiserver.strategies.core.pod.spec import IP_RULE
from podlife.apiserver.strategies.field_checks import is_ip, problems_at
from podlife.apiserver.strategies.strategy import Strategy

PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"


def validate_endpoint_ip(text: str, path: str, rule: str) -> list[FieldError]:
    if not is_ip(text):
        return [bad_value(path, text, rule)]
    address = ipaddress.ip_address(text)
    errors: list[FieldError] = []
    if address.is_unspecified:
        errors.append(bad_value(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(bad_value(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        errors.append(bad_value(path, text, detail))
    if text.startswith("224.0.0.") or text.lower().startswith("ff02:"):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(bad_value(path, text, detail))
    return errors


class EndpointsStrategy(Strategy):
    creates_on_update = True

    def default(self, obj: Object) -> None:
        if "subsets" in obj:
            drop_empty_parts(obj["subsets"])
            if not obj["subsets"]:
                del obj["subsets"]
        for subset in obj.get("subsets", ()):
            for port in subset.get("ports", ()):
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for index, subset in enumerate(obj.get("subsets", ())):
            errors += _validate_subset(subset, f"subsets[{index}]")
        return errors


def _validate_subset(subset: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in ("addresses", "notReadyAddresses"):
        for index, address in enumerate(subset.get(field, ())):
            errors += _validate_address(address, f"{path}.{field}[{index}]")
    ports = subset.get("ports", [])
    for index, port in enumerate(ports):
        at = f"{path}.ports[{index}]"
        if name := port.get("name", ""):
            errors += problems_at(f"{at}.name", name, check_dns_label(name))
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        if not 1 <= (number := port.get("port", 0)) <= 65535:
            errors.append(bad_value(f"{at}.port", number, PORT_RANGE))
        if port["protocol"] not in PROTOCOLS:
            errors.append(not_supported(f"{at}.protocol", port["protocol"], PROTOCOLS))
    return errors


def _validate_address(address: Object, path: str) -> list[FieldError]:
    text = address.get("ip", "")
    errors = [] if is_ip(text) else [bad_value(f"{path}.ip", text, IP_RULE)]
    if hostname := address.get("hostname"):
        errors += problems_at(f"{path}.hostname", hostname, check_dns_label(hostname))
    if (node := address.get("nodeName")) is not None:
        errors += problems_at(f"{path}.nodeName", node, check_dns_subdomain(node))
    return errors + validate_endpoint_ip(text, f"{path}.ip", "must be a valid IP address")
