"""Certificates of nodes: which requests the server signs, for what name; and what a bootstrap token allows."""

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
from podlife.pki import CertificateAuthority, Subject
from podlife.pki.certificates import make_request
from podlife.wire import Peer, Query, Request

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STORED_AS = "certificatesigningrequests.certificates.k8s.io"
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
NODE = Peer("system:node:n1", ("system:nodes",))
JOINING = Peer("system:bootstrap:abcdef", ("system:bootstrappers",))
MASTER = Peer("admin", ("system:masters",))
JANE = Peer("jane", ())
SERVING: dict[str, Any] = {
    "signerName": "kubernetes.io/kubelet-serving",
    "usages": ["digital signature", "server auth"],
}
CLIENT: dict[str, Any] = {
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
    assert isinstance(response.body, bytes)
    return response.status, json.loads(response.body)


def request_of(name: str = "system:node:n1", *alternatives: str) -> bytes:
    _, request = make_request(Subject(name, ("system:nodes",), alternatives or ("n1",)))
    return request


async def ask(server: ApiHandler, peer: Peer, request: bytes, **spec: Any) -> tuple[int, Any]:
    """A request for a serving certificate, unless the spec says otherwise."""
    told = {"request": base64.b64encode(request).decode(), **SERVING, **spec}
    return await send(server, "POST", PATH, peer, {"metadata": {"generateName": "csr-"}, "spec": told})


def certificate_in(answer: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(answer["status"]["certificate"]))


def usages_of(certificate: x509.Certificate) -> list[x509.ObjectIdentifier]:
    return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def names_in(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)


async def test_a_node_gets_a_certificate_for_its_own_name_and_no_other(server: ApiHandler) -> None:
    code, made = await ask(server, NODE, request_of("system:node:n1", "n1", "kubernetes", "n2"))
    assert code == 201
    assert made["metadata"]["name"].startswith("csr-")
    assert made["spec"]["username"] == "system:node:n1"
    assert [each["type"] for each in made["status"]["conditions"]] == ["Approved"]
    certificate = certificate_in(made)
    assert names_in(certificate) == ["n1"]
    assert usages_of(certificate) == [ExtendedKeyUsageOID.SERVER_AUTH]


@pytest.mark.parametrize("spec", [SERVING, CLIENT], ids=["serving", "client"])
async def test_a_node_gets_none_for_another(server: ApiHandler, spec: dict[str, Any]) -> None:
    assert (await ask(server, NODE, request_of(), **spec))[0] == 201
    code, answer = await ask(server, NODE, request_of("system:node:n2"), **spec)
    assert code == 422
    assert "subject must be" in answer["message"]


async def test_an_administrator_gets_one_for_any_node(server: ApiHandler) -> None:
    code, made = await ask(server, MASTER, request_of("system:node:n2"))
    assert code == 201
    assert names_in(certificate_in(made)) == ["n2"]
    for name in ("kubernetes", "system:node:", "system:node:*", "system:node:N 2"):
        code, answer = await ask(server, MASTER, request_of(name))
        assert code == 422
        assert "common name must be system:node:NAME" in answer["message"]


async def test_somebody_who_is_no_node_gets_none_to_serve_with(server: ApiHandler) -> None:
    code, made = await ask(server, JOINING, request_of())
    assert code == 201
    assert [each["type"] for each in made["status"]["conditions"]] == ["Denied"]
    assert "certificate" not in made["status"]


@pytest.mark.parametrize("spec", [SERVING, CLIENT], ids=["serving", "client"])
async def test_somebody_who_may_not_is_refused(server: ApiHandler, spec: dict[str, Any]) -> None:
    assert (await ask(server, JANE, request_of(), **spec))[0] == 403


@pytest.mark.parametrize(
    ("request_pem", "spec", "line"),
    [
        (b"nonsense", {}, "not a PEM certificate request"),
        (b"", {}, "spec.request: Required value"),
        (
            b"x",
            {"signerName": "kubernetes.io/kube-apiserver-client"},
            "PEM block type must be CERTIFICATE REQUEST",
        ),
        (b"x", {"usages": ["client auth", "server auth"]}, "spec.usages: Unsupported value"),
        (b"x", {"usages": []}, "server auth is required"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_line(
    server: ApiHandler, request_pem: bytes, spec: dict[str, Any], line: str
) -> None:
    code, answer = await ask(server, NODE, request_pem, **spec)
    assert code == 422
    assert line in answer["message"]


async def names_kept(server: ApiHandler) -> list[str]:
    return [record.key.name for record in server.registry.store.list(STORED_AS)]


async def test_requests_that_the_server_answers_are_not_kept(server: ApiHandler) -> None:
    await ask(server, NODE, request_of())
    assert await names_kept(server) == []


async def test_a_request_to_another_signer_waits_for_it_and_names_its_sender(server: ApiHandler) -> None:
    forged = {"signerName": "example.com/signer", "username": "admin", "groups": ["system:masters"]}
    code, made = await ask(server, NODE, request_of(), **forged)
    assert (code, made["status"]) == (201, {})
    assert made["spec"]["username"] == "system:node:n1"
    assert made["spec"]["groups"] == ["system:nodes", "system:authenticated"]
    assert await names_kept(server) == [made["metadata"]["name"]]
    approval = f"{PATH}/{made['metadata']['name']}/approval"
    made["status"] = {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "c2VsZg=="}
    assert (await send(server, "PUT", approval, NODE, made))[0] == 403
    code, approved = await send(server, "PUT", approval, MASTER, made)
    assert code == 200
    assert [each["type"] for each in approved["status"]["conditions"]] == ["Approved"]
    assert "certificate" not in approved["status"]


async def test_an_applied_request_names_its_sender_too(server: ApiHandler) -> None:
    spec = {**CLIENT, "signerName": "example.com/signer", "username": "eve", "groups": ["eves"]}
    spec["request"] = base64.b64encode(request_of()).decode()
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec}
    request = Request(
        "PATCH",
        f"{PATH}/a",
        Query("fieldManager=me"),
        {"Content-Type": "application/apply-patch+yaml"},
        json.dumps({**body, "metadata": {"name": "a"}}).encode(),
        MASTER,
    )
    response = await server(request)
    assert isinstance(response.body, bytes)
    assert response.status == 201
    assert json.loads(response.body)["spec"]["username"] == "admin"


async def test_a_server_without_an_authority_keeps_them_all() -> None:
    bare = assemble(MemoryStore(), clock=ManualClock(), authenticator=Authenticator())
    code, made = await ask(bare, NODE, request_of())
    assert (code, made["status"]) == (201, {})
    assert await names_kept(bare) == [made["metadata"]["name"]]


async def test_who_joins_gets_a_certificate_to_prove_that_it_is_that_node(server: ApiHandler) -> None:
    code, answer = await ask(server, JOINING, request_of("system:node:n7"), **CLIENT)
    assert code == 201
    certificate = certificate_in(answer)
    assert certificate.subject.rfc4514_string() == "CN=system:node:n7,O=system:nodes"
    assert usages_of(certificate) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    with pytest.raises(x509.ExtensionNotFound):
        names_in(certificate)


async def test_who_joins_gets_no_certificate_of_an_administrator(server: ApiHandler) -> None:
    assert (await ask(server, JOINING, request_of("admin"), **CLIENT))[0] == 422


async def test_a_certificate_for_clients_is_not_given_for_serving(server: ApiHandler) -> None:
    code, answer = await ask(server, JOINING, request_of(), **{**CLIENT, "usages": ["server auth"]})
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
    for peer in (None, JOINING, JANE):
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
