"""Addresses of services, as webhooks and other API servers are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from podlife.api.codec import encode
from podlife.apiserver.service_endpoints import UnresolvedError, resolve
from podlife.apiserver.storage import Key, MemoryStore, Put

SLICES = "endpointslices.discovery.k8s.io"


def endpoint_slice(*endpoints: dict[str, Any], service: str = "s", **port: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"labels": labels}, "ports": [port], "endpoints": list(endpoints)}


def endpoint(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def pod(name: str, ip: str, *, ready: str = "True", labels: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "c", "ports": [{"name": "https", "containerPort": 8443}]}
    return {
        "metadata": {"name": name, "labels": labels or {"app": "x"}},
        "spec": {"containers": [container]},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
    }


async def store_of(
    service: dict[str, Any] | None, *slices: dict[str, Any], pods: Sequence[dict[str, Any]] = ()
) -> MemoryStore:
    store = MemoryStore()
    objects = [(SLICES, f"s-{number}", each) for number, each in enumerate(slices)]
    objects += [("pods", each["metadata"]["name"], each) for each in pods]
    if service is not None:
        objects.append(("services", "s", service))
    for resource, name, obj in objects:
        await _put(store, Key(resource, "ns", name), obj)
    return store


async def _put(store: MemoryStore, key: Key, obj: dict[str, Any]) -> None:
    await store.commit(Put(key, lambda _: encode(obj), expected=0))


def service(**port: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"app": "x"}, "ports": [{"port": 443, **port}]}}


async def test_a_service_leads_to_the_ready_endpoints_of_its_slices() -> None:
    store = await store_of(
        service(name="q"),
        endpoint_slice(
            endpoint("10.1.1.1"),
            endpoint("10.1.1.2", ready=False),
            endpoint("10.1.1.3", ready=True),
            name="q",
            port=8,
        ),
        endpoint_slice(endpoint("10.1.1.4"), name="p", port=7),
        endpoint_slice(endpoint("10.1.1.5"), name="q", port=8, service="other"),
    )
    assert resolve(store, "ns", "s", 443) == [("10.1.1.1", 8), ("10.1.1.3", 8)]


@pytest.mark.parametrize(
    ("port", "number"), [({"targetPort": 9443}, 9443), ({"targetPort": "https"}, 8443), ({}, 443)]
)
async def test_without_endpoints_it_leads_to_the_ready_pods_that_it_selects(
    port: dict[str, Any], number: int
) -> None:
    pods = [
        pod("a", "127.0.0.1"),
        pod("b", "127.0.0.2", ready="False"),
        pod("c", "127.0.0.3", labels={"app": "y"}),
        pod("d", "127.0.0.4"),
    ]
    store = await store_of(service(**port), endpoint_slice(), pods=pods)
    assert resolve(store, "ns", "s", 443) == [("127.0.0.1", number), ("127.0.0.4", number)]


async def test_an_external_name_is_its_own_address() -> None:
    store = await store_of({"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert resolve(store, "ns", "s", 443) == [("example.com", 443)]


@pytest.mark.parametrize(
    ("given", "slices", "why", "reason"),
    [
        (None, [], 'service "s" not found', "ServiceNotFound"),
        (
            {"spec": {"ports": [{"port": 80}]}},
            [],
            'no service port 443 found for service "s"',
            "ServicePortError",
        ),
        (service(), [], 'no endpoints available for service "s"', "EndpointsNotFound"),
        (service(), [endpoint_slice(port=8)], 'no endpoints available for service "s"', "MissingEndpoints"),
    ],
)
async def test_a_service_without_an_address(
    given: dict[str, Any] | None, slices: list[dict[str, Any]], why: str, reason: str
) -> None:
    store = await store_of(given, *slices)
    with pytest.raises(UnresolvedError) as caught:
        resolve(store, "ns", "s", 443)
    assert (str(caught.value), caught.value.reason) == (why, reason)
