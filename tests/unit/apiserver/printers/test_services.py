from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import ENDPOINTS, SERVICES

from .situation import ANY_AGE, NOW, Situation, named, with_any_age

PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}]


def service(
    name: str, cells: list[str], *, ingress: list[dict[str, Any]] | None = None, **spec: Any
) -> Situation:
    obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": named(name),
        "spec": {"ports": PORTS, **spec},
        "status": {"loadBalancer": {"ingress": ingress} if ingress else {}},
    }
    *front, selector = cells
    return Situation(name, obj, [name, *front, ANY_AGE, selector])


def ip(address: str) -> dict[str, str]:
    return {"clusterIP": address, "clusterIPs": [address]}  # type: ignore[dict-item]


def services(now: float) -> list[Situation]:
    balanced = [{"ip": "192.0.2.9"}, {"hostname": "lb.example.com"}, {"ip": "192.0.2.10"}]
    two = [*PORTS, {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}]
    return [
        service(
            "inside",
            ["ClusterIP", "10.0.0.21", "<none>", "80/TCP", "app=web,tier=front"],
            type="ClusterIP",
            selector={"tier": "front", "app": "web"},
            **ip("10.0.0.21"),
        ),
        service(
            "headless", ["ClusterIP", "None", "<none>", "80/TCP", "<none>"], type="ClusterIP", **ip("None")
        ),
        service(
            "outside",
            ["ClusterIP", "10.0.0.22", "198.51.100.1,198.51.100.2", "80/TCP", "<none>"],
            type="ClusterIP",
            externalIPs=["198.51.100.1", "198.51.100.2"],
            **ip("10.0.0.22"),
        ),
        service(
            "balanced",
            [
                "LoadBalancer",
                "10.0.0.23",
                "192.0.2.10,192.0.2.9,lb.example.com,198.51.100.1",
                "53:30053/UDP",
                "<none>",
            ],
            type="LoadBalancer",
            ingress=balanced,
            externalIPs=["198.51.100.1"],
            **(ip("10.0.0.23") | {"ports": two[1:]}),
        ),
        service(
            "unbalanced",
            ["LoadBalancer", "10.0.0.24", "<pending>", "53:30054/UDP", "<none>"],
            type="LoadBalancer",
            **(ip("10.0.0.24") | {"ports": [two[1] | {"nodePort": 30054}]}),
        ),
        service(
            "alias",
            ["ExternalName", "<none>", "db.example.com", "<none>", "<none>"],
            type="ExternalName",
            externalName="db.example.com",
            ports=[],
        ),
    ]


def endpoints(now: float) -> list[Situation]:
    def of(name: str, subsets: list[dict[str, Any]], shown: str) -> Situation:
        obj = {"apiVersion": "v1", "kind": "Endpoints", "metadata": named(name), "subsets": subsets}
        return Situation(name, obj, [name, shown, ANY_AGE])

    def subset(*addresses: str, ports: tuple[int, ...] = ()) -> dict[str, Any]:
        return {
            "addresses": [{"ip": each} for each in addresses],
            "ports": [{"name": f"p{each}", "port": each, "protocol": "TCP"} for each in ports],
        }

    return [
        of("none", [], "<none>"),
        of("no-ports", [subset("10.1.0.1", "10.1.0.2")], "10.1.0.1,10.1.0.2"),
        of("two-ports", [subset("10.1.0.1", ports=(80, 443))], "10.1.0.1:80,10.1.0.1:443"),
        of(
            "three",
            [subset("10.1.0.1", "10.1.0.2", "10.1.0.3", ports=(80,))],
            "10.1.0.1:80,10.1.0.2:80,10.1.0.3:80",
        ),
        of(
            "many",
            [subset("10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", ports=(80,))],
            "10.1.0.1:80,10.1.0.2:80,10.1.0.3:80 + 2 more...",
        ),
        of("six", [subset("fd00::1", ports=(80,))], "[fd00::1]:80"),
    ]


@pytest.mark.parametrize("case", services(NOW), ids=lambda case: case.name)
def test_service_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert with_any_age(SERVICES.cells(case.obj, NOW), SERVICES.columns) == case.cells


@pytest.mark.parametrize("case", endpoints(NOW), ids=lambda case: case.name)
def test_endpoints_are_shown_as_the_real_server_shows_them(case: Situation) -> None:
    assert with_any_age(ENDPOINTS.cells(case.obj, NOW), ENDPOINTS.columns) == case.cells
