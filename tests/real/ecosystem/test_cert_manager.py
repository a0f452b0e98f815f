"""cert-manager, unmodified: its chart, controllers, CA injector and webhook, on `podlife up`.

With PODLIFE_ECOSYSTEM=all the same on Kubernetes' own control plane, which shows that the tests ask for nothing that is
podlife's alone.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.kit.wait import until_blocking
from tests.real.conftest import require
from tests.real.ecosystem import clusters
from tests.real.ecosystem.cert_manager import CertManager, cert_manager

CLUSTERS = {"podlife": clusters.podlife, "kubernetes": clusters.kubernetes}
WANTED = list(CLUSTERS) if os.environ.get("PODLIFE_ECOSYSTEM") == "all" else ["podlife"]


@pytest.fixture(scope="module", params=WANTED)
def manager(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[CertManager]:
    require("helm", "cert-manager", "kubectl")
    if request.param == "kubernetes":
        require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / f"cert-manager-{request.param}"
    with CLUSTERS[request.param](folder) as server, cert_manager(folder, server) as started:
        yield started


def leaf(issuer: str, secret: str, **more: Any) -> dict[str, Any]:
    return {
        "secretName": secret,
        "dnsNames": [f"{secret}.example.com"],
        "issuerRef": {"name": issuer},
        **more,
    }


def certificate_in(secret: dict[str, Any], key: str = "tls.crt") -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"][key]))


@pytest.fixture(scope="module")
def authority(manager: CertManager) -> str:
    """The name of an issuer whose CA is a certificate of a self-signed issuer."""
    manager.create("Issuer", "self-signed", {"selfSigned": {}})
    manager.wait("issuer/self-signed")
    manager.create("Certificate", "root", leaf("self-signed", "root", isCA=True, commonName="root"))
    manager.wait("certificate/root")
    manager.create("Issuer", "authority", {"ca": {"secretName": "root"}})
    manager.wait("issuer/authority")
    return "authority"


def test_a_certificate_of_a_ca_becomes_ready_and_its_secret_is_signed_by_it(
    manager: CertManager, authority: str
) -> None:
    manager.create(
        "Certificate", "web", leaf(authority, "web", additionalOutputFormats=[{"type": "CombinedPEM"}])
    )
    manager.wait("certificate/web")
    secret = manager.secret("web")
    assert secret["type"] == "kubernetes.io/tls"
    assert {"tls.crt", "tls.key", "ca.crt", "tls-combined.pem"} <= set(secret["data"])
    signed = certificate_in(secret)
    signed.verify_directly_issued_by(certificate_in(manager.secret("root")))
    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["web.example.com"]
    shown = manager.kubectl("get", "certificate", "web", "--no-headers").out.split()
    assert shown[:3] == ["web", "True", "web"]


def test_the_webhook_fills_in_and_refuses(manager: CertManager, authority: str) -> None:
    refused = manager.create(
        "Certificate", "no-names", {"secretName": "x", "issuerRef": {"name": authority}}, code=1
    )
    assert 'admission webhook "webhook.cert-manager.io" denied the request' in refused.err
    assert "at least one of commonName" in refused.err
    manager.create("Certificate", "asked", leaf(authority, "asked"))
    manager.wait("certificate/asked")
    [request] = [
        each
        for each in manager.kubectl.get("certificaterequests")
        if each["metadata"]["annotations"]["cert-manager.io/certificate-name"] == "asked"
    ]
    assert request["spec"]["username"], "the mutating webhook sets the user of the request"
    patch = '{"spec":{"username":"somebody-else"}}'
    changed = manager.kubectl(
        "patch", "certificaterequest", request["metadata"]["name"], "--type=merge", "-p", patch, code=1
    )
    assert "denied the request" in changed.err


def test_a_lost_secret_and_a_changed_name_are_issued_again(manager: CertManager, authority: str) -> None:
    manager.create("Certificate", "again", leaf(authority, "again", revisionHistoryLimit=1))
    manager.wait("certificate/again")
    first = certificate_in(manager.secret("again")).serial_number

    def revision(wanted: int) -> None:
        manager.kubectl.wait_for("certificate/again", "{.status.revision}", str(wanted))
        manager.wait("certificate/again")

    manager.kubectl("delete", "secret", "again")
    revision(2)
    assert certificate_in(manager.secret("again")).serial_number != first
    manager.kubectl(
        "patch", "certificate", "again", "--type=merge", "-p", '{"spec":{"dnsNames":["other.example.com"]}}'
    )
    revision(3)
    names = certificate_in(manager.secret("again")).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["other.example.com"]
    until_blocking(
        lambda: (
            sum(
                each["metadata"]["annotations"]["cert-manager.io/certificate-name"] == "again"
                for each in manager.kubectl.get("certificaterequests")
            )
            == 1
        ),
        "older requests are deleted",
    )


def test_an_annotated_ingress_gets_a_certificate_that_goes_with_it(
    manager: CertManager, authority: str
) -> None:
    spec = {
        "tls": [{"hosts": ["shop.example.com"], "secretName": "shop"}],
        "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}},
    }
    manager.create("Ingress", "shop", spec, annotations={"cert-manager.io/issuer": authority})
    manager.wait("certificate/shop")
    [owner] = manager.kubectl.get("certificate", "shop")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Ingress", "shop", True)
    manager.kubectl("delete", "ingress", "shop")
    until_blocking(lambda: manager.kubectl.is_gone("certificate", "shop"))


def test_a_certificate_without_its_issuer_waits_for_it(manager: CertManager) -> None:
    manager.create("Certificate", "early", leaf("late", "early"))
    manager.kubectl("wait", "certificate/early", "--for=condition=Issuing", "--timeout=180s")
    manager.create("Issuer", "late", {"selfSigned": {}})
    manager.wait("certificate/early")
