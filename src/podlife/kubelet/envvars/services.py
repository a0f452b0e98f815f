"""Service environment variables, in the format of Docker links."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podlife.api.codec import Object


def service_variables(services: Iterable[Object]) -> dict[str, str]:
    """By service in the order of names, so that of two whose names become the same the later one always wins."""
    variables: dict[str, str] = {}
    for service in sorted(services, key=lambda each: each["metadata"]["name"]):
        # A headless service, and one that only renames another, has no address.
        if (service.get("spec") or {}).get("clusterIP") not in (None, "", "None"):
            variables.update(_variables(service))
    return variables


def _variables(service: Object) -> Iterator[tuple[str, str]]:
    prefix = _variable_name(service["metadata"]["name"])
    address, ports = service["spec"]["clusterIP"], service["spec"].get("ports") or []
    yield f"{prefix}_SERVICE_HOST", address
    if not ports:
        return
    yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_variable_name(port['name'])}", str(port["port"])
    yield f"{prefix}_PORT", _url(address, ports[0])
    for port in ports:
        link = f"{prefix}_PORT_{port['port']}_{_protocol(port)}"
        yield link, _url(address, port)
        yield f"{link}_PROTO", _protocol(port).lower()
        yield f"{link}_PORT", str(port["port"])
        yield f"{link}_ADDR", address


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()


def _protocol(port: Mapping[str, Any]) -> str:
    return str(port.get("protocol") or "TCP").upper()


def _url(address: str, port: Mapping[str, Any]) -> str:
    host = f"[{address}]" if _is_v6(address) else address
    return f"{_protocol(port).lower()}://{host}:{port['port']}"


def _is_v6(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 6
    except ValueError:
        return False
