"""Services that change: fields go with the type that needed them. Warnings about fields that are ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podlife.apiserver.bootstrap import publish_endpoint
from podlife.testing import virtual_time
from podlife.wire import Handler
from tests.component.apiserver.requests import send, whole
from tests.kit.embedded import start

SERVICES = "/api/v1/namespaces/default/services"
PORT = {"port": 80, "targetPort": 80, "protocol": "TCP"}


async def ask(handler: Handler, method: str, path: str, body: object) -> tuple[int, Any, list[str]]:
    answer = await send(handler, method, path, body)
    warnings = [each[1] for each in answer.headers if each[0] == "Warning"]
    return answer.status, json.loads(await whole(answer)), warnings


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"ports": [dict(PORT)], **spec}}


async def change(before: dict[str, Any], **after: Any) -> tuple[int, Any]:
    """Sends back what was created, with these fields of its spec changed; None removes one."""
    handler = await start()
    code, stored, _ = await ask(handler, "POST", SERVICES, service(**before))
    assert code == 201, stored
    spec = stored["spec"] | after
    stored["spec"] = {name: value for name, value in spec.items() if value is not None}
    code, changed, _ = await ask(handler, "PUT", f"{SERVICES}/web", stored)
    return code, changed


@virtual_time
async def test_traffic_policy_goes_with_the_external_addresses() -> None:
    code, changed = await change({"externalIPs": ["192.0.2.1"]}, externalIPs=None)
    assert code == 200
    assert "externalTrafficPolicy" not in changed["spec"]


@virtual_time
async def test_traffic_policy_that_is_changed_as_well_is_refused() -> None:
    code, refused = await change(
        {"externalIPs": ["192.0.2.1"]}, externalIPs=None, externalTrafficPolicy="Local"
    )
    assert code == 422
    assert "may only be set for externally-accessible services" in refused["message"]


@virtual_time
async def test_what_only_a_load_balancer_has_goes_when_it_becomes_a_cluster_ip() -> None:
    before = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30001,
        "loadBalancerClass": "example.com/lb",
        "ports": [PORT | {"nodePort": 30080}],
    }
    code, changed = await change(before, type="ClusterIP")
    assert code == 200, changed
    gone = {"externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass"}
    assert not (gone | {"allocateLoadBalancerNodePorts"}) & changed["spec"].keys()
    assert changed["spec"]["ports"] == [PORT]
    assert changed["spec"]["clusterIP"]


@virtual_time
async def test_health_check_port_goes_with_the_local_policy() -> None:
    before = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30001}
    code, changed = await change(before, externalTrafficPolicy="Cluster")
    assert (code, "healthCheckNodePort" in changed["spec"]) == (200, False)


@virtual_time
async def test_new_node_port_of_a_service_that_has_none_any_more_is_refused() -> None:
    before = {"type": "NodePort", "ports": [PORT | {"nodePort": 30080}]}
    code, refused = await change(before, type="ClusterIP", ports=[PORT | {"nodePort": 30081}])
    assert code == 422
    assert "spec.ports[0].nodePort" in refused["message"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"clusterIP": "None"}, []),
        (
            {"clusterIP": "None", "externalIPs": ["192.0.2.1"], "sessionAffinity": "ClientIP"},
            [
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        ),
        (
            {"externalIPs": ["2001:DB8::", "::ffff:192.0.2.1"]},
            [
                'spec.externalIPs[0]: IPv6 address "2001:DB8::" should be in RFC 5952 canonical format ("2001:db8::")',
                'spec.externalIPs[1]: non-standard IP address "::ffff:192.0.2.1" is invalid: use "192.0.2.1"',
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            ],
        ),
        (
            {"type": "ExternalName", "externalName": "a.example", "externalIPs": ["192.0.2.1"]},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
        ),
        (
            {"externalName": "a.example"},
            ['spec.externalName is ignored when spec.type is not "ExternalName"'],
        ),
        (
            {"trafficDistribution": "PreferClose"},
            ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
        ),
        (
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.1/24", "2001:DB8::/32"]},
            [
                (
                    'spec.loadBalancerSourceRanges[0]: CIDR value "192.0.2.1/24" is ambiguous in this context '
                    '(should be "192.0.2.0/24" or "192.0.2.1/32"?)'
                ),
                (
                    'spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 '
                    'canonical format ("2001:db8::/32")'
                ),
            ],
        ),
    ],
)
@virtual_time
async def test_ignored_and_deprecated_fields_are_warned_about(
    spec: dict[str, Any], expected: list[str]
) -> None:
    handler = await start()
    code, stored, warnings = await ask(handler, "POST", SERVICES, service(**spec))
    assert code == 201, stored
    quoted = [each.replace("\\", "\\\\").replace('"', '\\"') for each in expected]
    assert warnings == [f'299 - "{each}"' for each in quoted]


@virtual_time
async def test_the_endpoint_of_the_api_server_follows_its_address() -> None:
    handler = await start()
    default = "/namespaces/default"
    paths = (
        f"/api/v1{default}/endpoints/kubernetes",
        f"/apis/discovery.k8s.io/v1{default}/endpointslices/kubernetes",
    )

    async def published(address: str) -> list[Any]:
        await publish_endpoint(handler.registry, address, 6443)
        return [
            found if code == 200 else code
            for code, found, _ in [await ask(handler, "GET", p, None) for p in paths]
        ]

    endpoints, slice_ = await published("10.0.0.1")
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "10.0.0.1"}]
    assert (slice_["addressType"], slice_["ports"][0]["port"]) == ("IPv4", 6443)
    assert await published("10.0.0.1") == [endpoints, slice_]
    _, moved = await published("fd00::1")
    assert (moved["addressType"], moved["endpoints"][0]["addresses"]) == ("IPv6", ["fd00::1"])
    assert await published("") == [404, 404]
