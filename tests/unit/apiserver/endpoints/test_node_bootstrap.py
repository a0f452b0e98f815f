"""What a bootstrap token allows: reading cluster-info, requesting a node's certificate, and nothing else."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import ManualClock
from podlife.pki import CertificateAuthority
from podlife.wire import Peer, Request
from tests.unit.apiserver.endpoints.test_certificate_signing_requests import PATH, request_of

JOINING = Peer("system:bootstrap:abcdef", ("system:bootstrappers",))
MASTER = Peer("admin", ("system:masters",))
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
CLIENT = {
    "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
    "usages": ["digital signature", "client auth"],
}


@pytest.fixture
async def server(tmp_path: Path) -> ApiHandler:
    pki = CertificateAuthority(tmp_path, ManualClock())
    pki.ensure_authority()
    server = assemble(
        MemoryStore(),
        clock=ManualClock(),
        authenticator=Authenticator(),
        sign_node_request=pki.sign_node_request,
    )
    await create_system_namespaces(server.registry, ADMIN)
    return server


async def send(
    server: ApiHandler, method: str, path: str, peer: Peer | None, body: Any = None
) -> tuple[int, Any]:
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    response = await server(Request(method, path, body=data, headers=headers, peer=peer))
    return response.status, json.loads(response.body)


async def sign(server: ApiHandler, peer: Peer, request: bytes, **spec: Any) -> tuple[int, Any]:
    told = {"request": base64.b64encode(request).decode(), **CLIENT, **spec}
    return await send(server, "POST", PATH, peer, {"metadata": {"generateName": "csr-"}, "spec": told})


def certificate_in(answer: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(answer["status"]["certificate"]))


async def test_who_joins_gets_a_certificate_to_prove_that_it_is_that_node(server: ApiHandler) -> None:
    code, answer = await sign(server, JOINING, request_of("system:node:n7"))
    assert code == 201
    certificate = certificate_in(answer)
    assert certificate.subject.rfc4514_string() == "CN=system:node:n7,O=system:nodes"
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)


async def test_who_joins_gets_no_certificate_to_serve_with(server: ApiHandler) -> None:
    serving = {"signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"]}
    _, answer = await sign(server, JOINING, request_of(), **serving)
    assert [each["type"] for each in answer["status"]["conditions"]] == ["Denied"]
    assert "certificate" not in answer["status"]


async def test_who_joins_gets_no_certificate_of_an_administrator(server: ApiHandler) -> None:
    code, _ = await sign(server, JOINING, request_of("admin"))
    assert code == 422


async def test_a_node_gets_only_its_own_certificate(server: ApiHandler) -> None:
    node = Peer("system:node:n1", ("system:nodes",))
    assert (await sign(server, node, request_of("system:node:n1")))[0] == 201
    assert (await sign(server, node, request_of("system:node:n2")))[0] == 422


async def test_somebody_else_gets_none(server: ApiHandler) -> None:
    assert (await sign(server, Peer("jane", ()), request_of()))[0] == 403


async def test_a_certificate_for_clients_is_not_given_for_serving(server: ApiHandler) -> None:
    code, answer = await sign(server, JOINING, request_of(), usages=["server auth"])
    assert code == 422
    assert "client auth is required" in answer["message"]


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets"])
async def test_who_joins_may_read_nothing(server: ApiHandler, path: str) -> None:
    assert (await send(server, "GET", path, JOINING))[0] == 403


async def test_where_the_cluster_is_may_be_read_by_everybody(server: ApiHandler) -> None:
    assert (await send(server, "GET", INFO, None))[0] == 404
    info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "text"}}
    made = await send(server, "POST", INFO.removesuffix("/cluster-info"), MASTER, info)
    assert made[0] == 201
    for peer in (None, JOINING, Peer("jane", ())):
        code, answer = await send(server, "GET", INFO, peer)
        assert (code, answer["data"]) == (200, {"kubeconfig": "text"})


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_where_the_cluster_is_may_be_changed_by_nobody_else(server: ApiHandler, method: str) -> None:
    for peer in (None, JOINING):
        assert (await send(server, method, INFO, peer, {}))[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/kube-public/configmaps",
        "/api/v1/namespaces/kube-public/configmaps/other",
        "/api/v1/namespaces/default/configmaps/cluster-info",
    ],
)
async def test_nothing_beside_it_may_be_read_without_being_known(server: ApiHandler, path: str) -> None:
    assert (await send(server, "GET", path, None))[0] == 401
