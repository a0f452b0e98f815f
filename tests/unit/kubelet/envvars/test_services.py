from __future__ import annotations

from typing import Any

from podlife.kubelet.envvars.services import service_variables


def service(name: str, address: str, *ports: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}}


def test_a_service_is_told_in_the_forms_and_the_order_of_upstream() -> None:
    found = service_variables(
        [service("red-store", "10.0.0.1", {"name": "http-api", "port": 80}, {"port": 53, "protocol": "UDP"})]
    )
    assert list(found.items()) == [
        ("RED_STORE_SERVICE_HOST", "10.0.0.1"),
        ("RED_STORE_SERVICE_PORT", "80"),
        ("RED_STORE_SERVICE_PORT_HTTP_API", "80"),
        ("RED_STORE_PORT", "tcp://10.0.0.1:80"),
        ("RED_STORE_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("RED_STORE_PORT_80_TCP_PROTO", "tcp"),
        ("RED_STORE_PORT_80_TCP_PORT", "80"),
        ("RED_STORE_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("RED_STORE_PORT_53_UDP", "udp://10.0.0.1:53"),
        ("RED_STORE_PORT_53_UDP_PROTO", "udp"),
        ("RED_STORE_PORT_53_UDP_PORT", "53"),
        ("RED_STORE_PORT_53_UDP_ADDR", "10.0.0.1"),
    ]


def test_an_address_of_version_6_is_in_brackets_where_a_port_follows() -> None:
    found = service_variables([service("six", "fd00::1", {"port": 80})])
    assert found["SIX_PORT"] == "tcp://[fd00::1]:80"
    assert found["SIX_SERVICE_HOST"] == found["SIX_PORT_80_TCP_ADDR"] == "fd00::1"


def test_a_service_without_an_address_of_its_own_is_not_told() -> None:
    services = [service("headless", "None", {"port": 80}), service("none-yet", "", {"port": 80})]
    services.append({"metadata": {"name": "external"}, "spec": {"externalName": "elsewhere.example"}})
    assert service_variables(services) == {}


def test_of_two_services_whose_names_become_the_same_the_later_name_wins_in_any_order() -> None:
    one, two = service("a-b", "10.0.0.1", {"port": 1}), service("a_b", "10.0.0.2", {"port": 1})
    assert service_variables([one, two]) == service_variables([two, one])
