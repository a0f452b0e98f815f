"""Addresses of services, as webhooks are reached."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import encode
from podlife.apiserver.admission.webhooks.services import UnresolvedError, resolve
from podlife.apiserver.storage import Key, MemoryStore, Put


def pod(name: str, ip: str, *, ready: str = "True", labels: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "c", "ports": [{"name": "https", "containerPort": 8443}]}
    return {
        "metadata": {"name": name, "labels": labels or {"app": "x"}},
        "spec": {"containers": [container]},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
    }


async def store_of(
    service: dict[str, Any] | None, *pods: dict[str, Any], endpoints: Any = None
) -> MemoryStore:
    store = MemoryStore()
    objects = [("services", "s", service), ("endpoints", "s", endpoints)]
    objects += [("pods", each["metadata"]["name"], each) for each in pods]
    for resource, name, obj in objects:
        if obj is not None:
            await _put(store, Key(resource, "ns", name), obj)
    return store


async def _put(store: MemoryStore, key: Key, obj: dict[str, Any]) -> None:
    await store.commit(Put(key, lambda _: encode(obj), expected=0))


def service(**port: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"app": "x"}, "ports": [{"port": 443, **port}]}}


@pytest.mark.parametrize(
    ("port", "number"), [({"targetPort": 9443}, 9443), ({"targetPort": "https"}, 8443), ({}, 443)]
)
async def test_a_service_leads_to_the_ready_pods_that_it_selects(port: dict[str, Any], number: int) -> None:
    pods = [
        pod("a", "10.1.1.1"),
        pod("b", "10.1.1.2", ready="False"),
        pod("c", "10.1.1.3", labels={"app": "y"}),
        pod("d", "10.1.1.4"),
    ]
    store = await store_of(service(**port), *pods)
    assert resolve(store, "ns", "s", 443) == [("10.1.1.1", number), ("10.1.1.4", number)]


async def test_endpoints_are_preferred_to_pods() -> None:
    subset = {
        "addresses": [{"ip": "10.2.2.2"}],
        "ports": [{"name": "p", "port": 7}, {"name": "q", "port": 8}],
    }
    store = await store_of(service(name="q"), pod("a", "10.1.1.1"), endpoints={"subsets": [subset]})
    assert resolve(store, "ns", "s", 443) == [("10.2.2.2", 8)]


async def test_an_external_name_is_its_own_address() -> None:
    store = await store_of({"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert resolve(store, "ns", "s", 443) == [("example.com", 443)]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, 'service "s" not found'),
        ({"spec": {"ports": [{"port": 80}]}}, 'no service port 443 found for service "s"'),
        (service(), 'no endpoints available for service "s"'),
        ({"spec": {"ports": [{"port": 443}]}}, 'no endpoints available for service "s"'),
    ],
)
async def test_a_service_without_an_address(given: dict[str, Any] | None, why: str) -> None:
    store = await store_of(given)
    with pytest.raises(UnresolvedError) as caught:
        resolve(store, "ns", "s", 443)
    assert str(caught.value) == why
