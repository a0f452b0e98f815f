"""CA of a data folder: what it creates, keeps and renews; and how it writes private files."""

from __future__ import annotations

import os
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podlife.clock import ManualClock
from podlife.errors import ConfigError
from podlife.pki import CertificateAuthority, KeyPair, Subject, names_for, write_private

SERVER = Subject("kube-apiserver", names=("localhost", "127.0.0.1"))
NODE = Subject("system:node:n1", ("system:nodes",))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2030, 1, 1, tzinfo=UTC))


@pytest.fixture
def pki(tmp_path: Path, clock: ManualClock) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "pki", clock)


def certificate_in(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_in(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in names]


def usages_of(certificate: x509.Certificate) -> list[x509.ObjectIdentifier]:
    return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_made_is_signed_by_the_authority_and_its_key_is_private(pki: CertificateAuthority) -> None:
    path = pki.ensure("server.pem", SERVER)
    certificate, authority = certificate_in(path), certificate_in(pki.authority_file)
    certificate.verify_directly_issued_by(authority)
    assert (mode(path), mode(path.parent), mode(pki.authority_file)) == (0o600, 0o700, 0o644)
    assert mode(path.parent / "ca.pem") == 0o600
    assert b"PRIVATE KEY" not in pki.authority_file.read_bytes()
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)


def test_a_certificate_with_names_serves_under_them_and_proves_nothing(pki: CertificateAuthority) -> None:
    certificate = certificate_in(pki.ensure("server.pem", SERVER))
    assert names_in(certificate) == ["localhost", "127.0.0.1"]
    assert usages_of(certificate) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_an_issued_certificate_speaks_for_its_subject_and_cannot_serve(pki: CertificateAuthority) -> None:
    pki.ensure_authority()
    certificate = x509.load_pem_x509_certificate(pki.issue(NODE).certificate)
    subject = certificate.subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:n1"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"
    assert usages_of(certificate) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_what_is_in_order_is_left_alone(pki: CertificateAuthority) -> None:
    path = pki.ensure("server.pem", SERVER)
    before = (path.read_bytes(), pki.authority_file.read_bytes())
    pki.ensure("server.pem", Subject("kube-apiserver", names=("localhost",)))
    assert (path.read_bytes(), pki.authority_file.read_bytes()) == before


def test_what_lacks_a_name_is_made_anew_under_the_same_authority(pki: CertificateAuthority) -> None:
    path = pki.ensure("server.pem", SERVER)
    authority = pki.authority_file.read_bytes()
    pki.ensure("server.pem", Subject("kube-apiserver", names=("localhost", "10.0.0.1")))
    assert names_in(certificate_in(path)) == ["localhost", "10.0.0.1"]
    assert pki.authority_file.read_bytes() == authority


def test_what_expires_soon_is_renewed(pki: CertificateAuthority, clock: ManualClock) -> None:
    path = pki.ensure("server.pem", SERVER)
    clock.advance(minutes=334 * 24 * 60)
    pki.ensure("server.pem", SERVER)
    assert certificate_in(path).not_valid_after_utc == datetime(2031, 1, 1, tzinfo=UTC)
    clock.advance(minutes=2 * 24 * 60)
    pki.ensure("server.pem", SERVER)
    assert certificate_in(path).not_valid_after_utc > datetime(2031, 6, 1, tzinfo=UTC)


def test_a_new_authority_replaces_all_it_had_signed(pki: CertificateAuthority, clock: ManualClock) -> None:
    path = pki.ensure("server.pem", SERVER)
    before = pki.authority_file.read_bytes()
    clock.advance(minutes=3640 * 24 * 60)
    pki.ensure("server.pem", SERVER)
    assert pki.authority_file.read_bytes() != before
    certificate_in(path).verify_directly_issued_by(certificate_in(pki.authority_file))


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xff\xfe", b"names: localhost\n-----BEGIN X-----\n"])
def test_a_damaged_file_is_made_anew(pki: CertificateAuthority, damage: bytes) -> None:
    path = pki.ensure("server.pem", SERVER)
    path.write_bytes(damage)
    pki.ensure("server.pem", SERVER)
    certificate_in(path).verify_directly_issued_by(certificate_in(pki.authority_file))


def test_an_authority_that_was_lost_is_not_replaced_by_another(pki: CertificateAuthority) -> None:
    path = pki.ensure("server.pem", SERVER)
    before = path.read_bytes()
    (path.parent / "ca.pem").unlink()
    with pytest.raises(ConfigError, match=r"ca.pem is missing, but certificates it signed exist"):
        pki.ensure("server.pem", SERVER)
    assert path.read_bytes() == before
    assert not (path.parent / "ca.pem").exists()


def test_an_authority_with_any_byte_changed_is_refused_and_left_alone(pki: CertificateAuthority) -> None:
    ca = pki.ensure("server.pem", SERVER).parent / "ca.pem"
    whole = ca.read_bytes()
    for position in range(len(b"checksum: "), len(whole)):
        damaged = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        ca.write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"ca.pem is damaged: restore it from a backup"):
            pki.issue(NODE)
    with pytest.raises(ConfigError, match=r"ca.pem is damaged"):
        pki.ensure("server.pem", SERVER)
    assert ca.read_bytes() == damaged


def test_files_of_an_earlier_podlife_without_a_checksum_are_taken(pki: CertificateAuthority) -> None:
    path = pki.ensure("server.pem", SERVER)
    for file in (path, path.parent / "ca.pem"):
        file.write_bytes(file.read_bytes().partition(b"\n")[2])
    before = path.read_bytes()
    pki.ensure("server.pem", SERVER)
    assert path.read_bytes() == before


def test_a_key_of_another_certificate_is_noticed(
    pki: CertificateAuthority, tmp_path: Path, clock: ManualClock
) -> None:
    ca = pki.ensure("server.pem", SERVER).parent / "ca.pem"
    other = CertificateAuthority(tmp_path / "other", clock)
    foreign = other.ensure("server.pem", SERVER).parent / "ca.pem"

    def parts(path: Path) -> tuple[bytes, bytes]:
        text = path.read_bytes().partition(b"\n")[2]
        split = text.index(b"-----BEGIN CERTIFICATE")
        return text[:split], text[split:]

    ca.write_bytes(parts(ca)[0] + parts(foreign)[1])
    with pytest.raises(ConfigError, match=r"ca.pem is damaged"):
        pki.ensure("server.pem", SERVER)


def test_issuing_without_an_authority_says_what_to_do(pki: CertificateAuthority) -> None:
    with pytest.raises(ConfigError, match="start the API server on it once"):
        pki.issue(NODE)


def test_the_files_make_working_tls_contexts(pki: CertificateAuthority) -> None:
    server = pki.server_context(pki.ensure("server.pem", SERVER))
    assert server.verify_mode is ssl.CERT_OPTIONAL
    assert server.minimum_version is ssl.TLSVersion.TLSv1_2
    client = pki.client_context(pki.ensure("client.pem", NODE))
    assert client.verify_mode is ssl.CERT_REQUIRED
    assert client.check_hostname
    assert [authority["subject"] for authority in client.get_ca_certs()] == [
        ((("commonName", "podlife-ca"),),)
    ]


def test_a_server_whose_files_are_in_order_loads_no_cryptography_library(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom podlife.apiserver.identities import prepare_identities\n"
        "from podlife.apiserver.settings import ApiServerSettings\nfrom podlife.clock import SystemClock\n"
        "prepare_identities(ApiServerSettings(), Path(sys.argv[1]), SystemClock())\n"
        "print('cryptography' in sys.modules)"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60
        )
        for _ in range(2)
    )
    assert (first.stdout, second.stdout) == ("True\n", "False\n"), first.stderr + second.stderr


def test_a_server_is_known_by_its_address_its_host_and_the_cluster_names() -> None:
    names = names_for("10.1.2.3", ["pod.example", "localhost"])
    assert {"localhost", "127.0.0.1", "::1", "10.1.2.3", "pod.example", "kubernetes.default.svc"} <= set(
        names
    )
    assert len(names) == len(set(names))


@pytest.mark.parametrize("bind", ["0.0.0.0", "::"])
def test_all_addresses_is_no_name(bind: str) -> None:
    assert bind not in names_for(bind)


def test_a_key_pair_does_not_show_its_key() -> None:
    assert "secret" not in repr(KeyPair(b"cert", b"secret"))


def test_a_private_file_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_private_file_that_cannot_be_finished_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, b"new")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]
