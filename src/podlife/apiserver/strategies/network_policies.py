"""NetworkPolicies, and the networks of Services: IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Iterator

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    forbidden,
    required,
)
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_subdomain, check_path_segment, check_port_name
from podlife.apiserver.strategies.field_checks import (
    check_at,
    check_canonical_ip,
    cidr_problem,
    immutable,
    one_of,
    port_number,
    require_at,
)
from podlife.apiserver.strategies.strategy import Strategy

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")
_MOST_CIDRS = 2
_SUBSET = "must be a strict subset of `cidr`"
_FAMILIES = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class NetworkPolicyStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("podSelector", {})
        for rule, _ in _rules(spec):
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = validate_label_selector(spec["podSelector"], "spec.podSelector")
        for rule, path in _rules(spec):
            for index, port in enumerate(rule.get("ports") or ()):
                errors += _validate_port(port, f"{path}.ports[{index}]")
            side = "from" if path.startswith("spec.ingress") else "to"
            for index, peer in enumerate(rule.get(side) or ()):
                errors += _validate_peer(peer, f"{path}.{side}[{index}]")
        types = spec["policyTypes"]
        if len(types) > len(_POLICY_TYPES):
            return [
                *errors,
                bad_value("spec.policyTypes", types, "may not specify more than two policyTypes"),
            ]
        for index, each in enumerate(types):
            errors += one_of(f"spec.policyTypes[{index}]", each, _POLICY_TYPES)
        return errors

    def warnings(self, obj: Object) -> list[str]:
        found: list[str] = []
        for rule, path in _rules(obj["spec"]):
            side = "from" if path.startswith("spec.ingress") else "to"
            for index, peer in enumerate(rule.get(side) or ()):
                block, at = peer.get("ipBlock") or {}, f"{path}.{side}[{index}].ipBlock"
                found += _canonical_warnings(block.get("cidr", ""), f"{at}.cidr")
                for number, each in enumerate(block.get("except") or ()):
                    found += _canonical_warnings(each, f"{at}.except[{number}]")
        return found


def _rules(spec: Object) -> Iterator[tuple[Object, str]]:
    for field in ("ingress", "egress"):
        for index, rule in enumerate(spec.get(field) or ()):
            yield rule, f"spec.{field}[{index}]"


def _validate_port(port: Object, path: str) -> FieldErrors:
    number, end = port.get("port"), port.get("endPort")
    yield from one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    if isinstance(number, int):
        yield from port_number(f"{path}.port", number)
        if end is not None:
            if end < number:
                yield bad_value(f"{path}.endPort", number, "must be greater than or equal to `port`")
            yield from port_number(f"{path}.endPort", end)
        return
    if end is not None:
        problem = "non-numeric" if number is not None else "not specified"
        yield bad_value(f"{path}.endPort", end, f"may not be specified when `port` is {problem}")
    if number is not None:
        yield from check_at(f"{path}.port", number, check_port_name)


def _validate_peer(peer: Object, path: str) -> FieldErrors:
    for field in ("podSelector", "namespaceSelector"):
        yield from validate_label_selector(peer.get(field), f"{path}.{field}")
    if "ipBlock" in peer:
        yield from _validate_block(peer["ipBlock"], f"{path}.ipBlock")
    if not peer:
        yield required(path, "must specify a peer")
    elif "ipBlock" in peer and len(peer) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _validate_block(block: Object, path: str) -> FieldErrors:
    if not (cidr := block.get("cidr", "")):
        yield required(f"{path}.cidr")
        return
    network, problem = cidr_problem(cidr)
    if problem:
        yield bad_value(f"{path}.cidr", cidr, problem)
    if network is None:
        return
    for index, text in enumerate(block.get("except") or ()):
        inner, problem = cidr_problem(text)
        if problem:
            yield bad_value(f"{path}.except[{index}]", text, problem)
        if inner is None:
            continue
        is_inside = inner.version == network.version and inner.network_address in network
        if not is_inside or inner.prefixlen <= network.prefixlen:
            yield bad_value(f"{path}.except[{index}]", text, _SUBSET)


def _canonical_warnings(text: str, path: str) -> list[str]:
    network, _ = cidr_problem(text)
    if network is None or ":" not in text or text == str(network):
        return []
    return [f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")']


class IPAddressStrategy(Strategy):
    """The name is the address."""

    validate_name = staticmethod(check_canonical_ip)

    def validate(self, obj: Object) -> list[FieldError]:
        path, parent = "spec.parentRef", obj["spec"].get("parentRef")
        if parent is None:
            return [required(path)]
        errors = (
            check_at(f"{path}.group", parent["group"], check_dns_subdomain) if parent.get("group") else []
        )
        for field in ("resource", "name"):
            errors += require_at(f"{path}.{field}", parent.get(field, ""), check_path_segment)
        if parent.get("namespace"):
            errors += check_at(f"{path}.namespace", parent["namespace"], check_path_segment)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("spec.parentRef", new["spec"].get("parentRef"), old["spec"].get("parentRef"))


class ServiceCIDRStrategy(Strategy):
    has_status = True

    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        path, cidrs = "spec.cidrs", obj["spec"].get("cidrs") or []
        if not cidrs:
            return [required(path, "at least one CIDR required")]
        if len(cidrs) > _MOST_CIDRS:
            # Upstream shows its internal type.
            return [bad_value(path, {"CIDRs": cidrs}, "may only hold up to 2 values")]
        errors: list[FieldError] = []
        networks = []
        for index, text in enumerate(cidrs):
            network, problem = cidr_problem(text)
            if network is not None:
                networks.append(network)
                if not problem and text != str(network):
                    problem = f'must be in canonical form ("{network}")'
            if problem:
                errors.append(bad_value(f"{path}[{index}]", text, problem))
        if len(networks) == _MOST_CIDRS and networks[0].version == networks[1].version:
            errors.append(bad_value(path, cidrs, _FAMILIES))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """A second family may be added; nothing else changes."""
        after, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
        if len(after) == len(before) or (len(before) == 1 and len(after) == _MOST_CIDRS):
            return [
                error
                for index, text in enumerate(before)
                for error in immutable(f"spec.cidrs[{index}]", after[index], text)
            ]
        return [bad_value("spec.cidrs", after, "field is immutable")]
