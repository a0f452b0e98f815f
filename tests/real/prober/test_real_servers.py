"""Probes and hooks against servers that nobody wrote for them: etcd's gRPC and kube-apiserver's TLS."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from podlife.kubelet.probe import HttpResponse, NoResponseError, grpc_health, http_get, http_request
from tests.kit.real_parts import Server

CONTAINER = {"name": "a"}


def etcd_port(server: Server) -> int:
    port = urlsplit(server.etcd_url).port
    assert port is not None
    return port


async def test_the_health_of_etcd_is_asked_by_grpc(kube: Server) -> None:
    await grpc_health("127.0.0.1", etcd_port(kube), "", seconds=60)
    with pytest.raises(NoResponseError) as raised:
        await grpc_health("127.0.0.1", etcd_port(kube), "x" * 300, seconds=60)
    assert str(raised.value) == (
        "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    )


async def test_what_speaks_grpc_with_tls_only_was_not_connected_to(kube: Server) -> None:
    with pytest.raises(NoResponseError, match="failed to connect service"):
        await grpc_health(kube.host, kube.port, "", seconds=2)


async def test_kube_apiserver_is_alive_over_https(kube: Server) -> None:
    token = next(iter(kube.tokens.values()))
    headers = [{"name": "Authorization", "value": f"Bearer {token}"}]
    action = {"port": kube.port, "path": "/livez", "scheme": "HTTPS", "httpHeaders": headers}
    request = http_request(action, CONTAINER, kube.host, purpose="probe")
    assert await http_get(request, seconds=60) == HttpResponse(200, b"ok")


async def test_plain_http_to_its_port_is_answered_and_is_no_success(kube: Server) -> None:
    request = http_request({"port": kube.port}, CONTAINER, kube.host, purpose="probe")
    assert (await http_get(request, seconds=60)).code == 400
