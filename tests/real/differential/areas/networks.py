"""IngressClasses, NetworkPolicies, and the networks of Services."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import Object, of
from tests.real.differential.steps import Area

NETWORKS = Area("networks")
_GROUP = "networking.k8s.io/v1"
_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_CLASSES = f"/apis/{_GROUP}/ingressclasses"
_POLICIES = f"/apis/{_GROUP}/namespaces/${{ns}}/networkpolicies"
_ADDRESSES = f"/apis/{_GROUP}/ipaddresses"
_CIDRS = f"/apis/{_GROUP}/servicecidrs"


def _class(name: str, controller: str = "example.com/ingress", **spec: Any) -> Object:
    return of(_GROUP, "IngressClass", name, spec={"controller": controller, **spec})


_PARAMETERS = {"apiGroup": "k8s.example.com", "kind": "K", "name": "n"}
NETWORKS.post("class", _CLASSES, _class("diff-class"))
NETWORKS.post("class-full", _CLASSES, _class("diff-full", parameters=_PARAMETERS))
NETWORKS.post(
    "class-of-a-namespace",
    _CLASSES,
    _class("diff-local", parameters={**_PARAMETERS, "scope": "Namespace", "namespace": "default"}),
)
_refused_classes: dict[str, Object] = {
    "controller-empty": _class("diff-refused", ""),
    "controller-without-path": _class("diff-refused", "example.com"),
    "controller-without-host": _class("diff-refused", "/a"),
    "controller-bad-host": _class("diff-refused", "A_b/c"),
    "controller-bad-path": _class("diff-refused", "example.com/a b"),
    "controller-long": _class("diff-refused", f"example.com/{'a' * 250}"),
    "parameters-empty": _class("diff-refused", parameters={}),
    "parameters-bad": _class("diff-refused", parameters={"apiGroup": "A b", "kind": "a/b", "name": ".."}),
    "scope": _class("diff-refused", parameters={**_PARAMETERS, "scope": "World"}),
    "namespace-missing": _class("diff-refused", parameters={**_PARAMETERS, "scope": "Namespace"}),
    "namespace-bad": _class(
        "diff-refused", parameters={**_PARAMETERS, "scope": "Namespace", "namespace": "A b"}
    ),
    "namespace-of-a-cluster": _class("diff-refused", parameters={**_PARAMETERS, "namespace": "default"}),
}
for _name, _body in _refused_classes.items():
    NETWORKS.post(f"class-refused-{_name}", _CLASSES, _body, 422)
NETWORKS.patch(
    "class-controller", "merge", f"{_CLASSES}/diff-class", {"spec": {"controller": "a.com/b"}}, 422
)
NETWORKS.patch("class-parameters", "merge", f"{_CLASSES}/diff-class", {"spec": {"parameters": _PARAMETERS}})
_DEFAULT = {"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}}
NETWORKS.patch("class-default", "merge", f"{_CLASSES}/diff-class", _DEFAULT)
NETWORKS.get("class-rows", f"{_CLASSES}?fieldSelector=metadata.name%3Ddiff-class", headers=_TABLE)
NETWORKS.get("class-plain-rows", f"{_CLASSES}?fieldSelector=metadata.name%3Ddiff-full", headers=_TABLE)
for _name in ("diff-class", "diff-full", "diff-local"):
    NETWORKS.delete(f"class-delete-{_name}", f"{_CLASSES}/{_name}")


def _policy(name: str, **spec: Any) -> Object:
    return of(_GROUP, "NetworkPolicy", name, spec=spec)


def _peer(**peer: Any) -> Object:
    return {"podSelector": {}, "ingress": [{"from": [peer]}]}


def _port(**port: Any) -> Object:
    return {"podSelector": {}, "egress": [{"ports": [port]}]}


_SELECTOR = {"matchLabels": {"app": "web"}}
NETWORKS.post("policy", _POLICIES, _policy("plain", podSelector={}))
NETWORKS.post("policy-without-selector", _POLICIES, _policy("bare"))
NETWORKS.post(
    "policy-full",
    _POLICIES,
    _policy(
        "full",
        podSelector=_SELECTOR,
        ingress=[
            {"ports": [{"port": 80, "endPort": 90}, {"port": "http", "protocol": "UDP"}, {}]},
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, {"podSelector": {}}]},
        ],
        egress=[{"to": [{"podSelector": _SELECTOR, "namespaceSelector": {}}]}, {}],
    ),
)
NETWORKS.post("policy-types", _POLICIES, _policy("types", policyTypes=["Egress"], podSelector={}))
NETWORKS.post("policy-warning", _POLICIES, _policy("warned", **_peer(ipBlock={"cidr": "2001:DB8::/64"})))
_refused_policies: dict[str, Object] = {
    "selector": {"podSelector": {"matchLabels": {"A b": "c d"}}},
    "types": {"podSelector": {}, "policyTypes": ["Ingress", "Any"]},
    "three-types": {"podSelector": {}, "policyTypes": ["Ingress", "Egress", "Ingress"]},
    "no-peer": _peer(),
    "two-peers": _peer(ipBlock={"cidr": "10.0.0.0/8"}, podSelector={}),
    "peer-selector": _peer(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
    "no-cidr": _peer(ipBlock={}),
    "not-a-cidr": _peer(ipBlock={"cidr": "10.0.0.0", "except": ["nonsense"]}),
    "cidr-bits": _peer(ipBlock={"cidr": "10.0.0.1/8"}),
    "cidr-zeros": _peer(ipBlock={"cidr": "010.0.0.0/8"}),
    "cidr-long-prefix": _peer(ipBlock={"cidr": "10.0.0.0/08"}),
    "cidr-mapped": _peer(ipBlock={"cidr": "::ffff:10.0.0.0/104"}),
    "except": _peer(ipBlock={"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8", "11.0.0.0/16", "::/8", "x"]}),
    "protocol": _port(protocol="ICMP"),
    "port": _port(port=0),
    "port-name": _port(port="A--b"),
    "end-port": _port(port=80, endPort=79),
    "end-port-high": _port(port=80, endPort=70000),
    "end-port-of-a-name": _port(port="http", endPort=80),
    "end-port-alone": _port(endPort=80),
}
for _name, _spec in _refused_policies.items():
    NETWORKS.post(f"policy-refused-{_name}", _POLICIES, _policy("refused", **_spec), 422)
NETWORKS.patch("policy-change", "merge", f"{_POLICIES}/plain", {"spec": {"podSelector": _SELECTOR}})
NETWORKS.patch("policy-label", "merge", f"{_POLICIES}/plain", {"metadata": {"labels": {"a": "b"}}})
NETWORKS.get("policy-rows", _POLICIES, headers=_TABLE)
NETWORKS.delete("policy-delete", f"{_POLICIES}/plain")


def _address(name: str, /, **parent: Any) -> Object:
    return of(_GROUP, "IPAddress", name, spec={"parentRef": parent} if parent else {})


_PARENT = {"group": "example.com", "resource": "gateways", "namespace": "default", "name": "web"}
NETWORKS.post("address", _ADDRESSES, _address("192.0.2.77", **_PARENT))
NETWORKS.post("address-6", _ADDRESSES, _address("2001:db8::77", resource="services", name="a"))
_refused_addresses: dict[str, Object] = {
    "name": _address("nonsense", **_PARENT),
    "not-canonical": _address("2001:DB8::1", **_PARENT),
    "mapped": _address("::ffff:192.0.2.1", **_PARENT),
    "no-parent": _address("192.0.2.78"),
    "parent-empty": _address("192.0.2.78", namespace=""),
    "parent-bad": _address("192.0.2.78", group="A b", resource="a/b", namespace="a%", name=".."),
}
for _name, _body in _refused_addresses.items():
    NETWORKS.post(f"address-refused-{_name}", _ADDRESSES, _body, 422)
NETWORKS.patch(
    "address-change", "merge", f"{_ADDRESSES}/192.0.2.77", {"spec": {"parentRef": {"name": "other"}}}, 422
)
NETWORKS.get("address-rows", f"{_ADDRESSES}?fieldSelector=metadata.name%3D192.0.2.77", headers=_TABLE)
NETWORKS.delete("address-delete", f"{_ADDRESSES}/192.0.2.77")
NETWORKS.delete("address-6-delete", f"{_ADDRESSES}/2001:db8::77")


def _cidr(name: str, *cidrs: str) -> Object:
    return of(_GROUP, "ServiceCIDR", name, spec={"cidrs": list(cidrs)})


_refused_cidrs: dict[str, tuple[str, ...]] = {
    "none": (),
    "three": ("10.0.0.0/24", "2001:db8::/64", "10.1.0.0/24"),
    "nonsense": ("nonsense",),
    "bits": ("10.0.0.1/24",),
    "not-canonical": ("2001:DB8::/64",),
    "one-family": ("10.0.0.0/24", "10.1.0.0/24"),
}
for _name, _texts in _refused_cidrs.items():
    NETWORKS.post(f"cidr-refused-{_name}", _CIDRS, _cidr("diff-refused", *_texts), 422)
