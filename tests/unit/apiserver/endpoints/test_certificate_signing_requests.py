"""Serving certificates of nodes: which requests the server signs, and for what name."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.storage import MemoryStore
from podlife.clock import ManualClock
from podlife.pki import CertificateAuthority
from podlife.wire import Peer, Request

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODE = Peer("system:node:n1", ("system:nodes",))


@pytest.fixture
def pki(tmp_path: Path) -> CertificateAuthority:
    pki = CertificateAuthority(tmp_path, ManualClock())
    pki.ensure_authority()
    return pki


@pytest.fixture
def server(pki: CertificateAuthority) -> ApiHandler:
    return assemble(
        MemoryStore(),
        clock=ManualClock(),
        authenticator=Authenticator(),
        sign_node_request=pki.sign_node_request,
    )


def request_of(name: str = "system:node:n1", *alternatives: str) -> bytes:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    names = x509.SubjectAlternativeName([x509.DNSName(each) for each in alternatives or ("n1",)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    key = ec.generate_private_key(ec.SECP256R1())
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


async def ask(
    server: ApiHandler, request: bytes, peer: Peer = NODE, **spec: Any
) -> tuple[int, dict[str, Any]]:
    body = {
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
            **spec,
        },
    }
    answer = await server(Request("POST", PATH, body=json.dumps(body).encode(), peer=peer))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body)


async def test_a_node_gets_a_certificate_for_its_own_name_and_no_other(server: ApiHandler) -> None:
    code, made = await ask(server, request_of("system:node:n1", "n1", "kubernetes", "n2"))
    assert code == 201
    assert made["metadata"]["name"].startswith("csr-")
    assert made["spec"]["username"] == "system:node:n1"
    assert [each["type"] for each in made["status"]["conditions"]] == ["Approved"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(made["status"]["certificate"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n1"]
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


async def test_a_node_gets_none_for_another(server: ApiHandler) -> None:
    code, answer = await ask(server, request_of("system:node:n2"))
    assert code == 422
    assert "subject must be" in answer["message"]


async def test_an_administrator_gets_one_for_any_node(server: ApiHandler) -> None:
    admin = Peer("admin", ("system:masters",))
    code, made = await ask(server, request_of("system:node:n2"), admin)
    assert code == 201
    certificate = x509.load_pem_x509_certificate(base64.b64decode(made["status"]["certificate"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n2"]
    for name in ("kubernetes", "system:node:", "system:node:*", "system:node:N 2"):
        code, answer = await ask(server, request_of(name), admin)
        assert code == 422
        assert "common name must be system:node:NAME" in answer["message"]


async def test_somebody_who_is_no_node_gets_none(server: ApiHandler) -> None:
    code, made = await ask(server, request_of(), Peer("system:kube-controller-manager"))
    assert code == 201
    assert [each["type"] for each in made["status"]["conditions"]] == ["Denied"]
    assert "certificate" not in made["status"]


async def test_somebody_who_may_not_is_refused(server: ApiHandler) -> None:
    code, _ = await ask(server, request_of(), Peer("eve", ("people",)))
    assert code == 403


@pytest.mark.parametrize(
    ("request_pem", "spec", "line"),
    [
        (b"nonsense", {}, "not a PEM certificate request"),
        (b"", {}, "spec.request: Required value"),
        (b"x", {"signerName": "kubernetes.io/kube-apiserver-client"}, "spec.signerName: Unsupported value"),
        (b"x", {"usages": ["client auth", "server auth"]}, "spec.usages: Unsupported value"),
        (b"x", {"usages": []}, "server auth is required"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_line(
    server: ApiHandler, request_pem: bytes, spec: dict[str, Any], line: str
) -> None:
    code, answer = await ask(server, request_pem, **spec)
    assert code == 422
    assert line in answer["message"]


async def test_requests_are_not_kept(server: ApiHandler) -> None:
    await ask(server, request_of())
    answer = await server(Request("GET", PATH, peer=Peer("admin", ("system:masters",))))
    assert answer.status == 405


async def test_a_server_without_an_authority_says_so() -> None:
    bare = assemble(MemoryStore(), clock=ManualClock(), authenticator=Authenticator())
    code, answer = await ask(bare, request_of())
    assert (code, answer["message"]) == (503, "this server does not sign certificates")
