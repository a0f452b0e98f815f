"""A certificate authority for the real parts: server and client certificates, and a signing key."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Long ago, so that clock skew cannot make a certificate "not yet valid".
VALID_FROM = datetime(2020, 1, 1, tzinfo=UTC)
VALID_UNTIL = VALID_FROM + timedelta(days=36500)


class Pki:
    """Files in one folder; keys are readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("podlife-test-ca")
        self.ca_file = folder / "ca.crt"
        self.service_account_key = self._write_key("service-account", ec.generate_private_key(ec.SECP256R1()))
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self._write("ca", builder.sign(self._key, hashes.SHA256()))

    def issue_server(self, *dns_names: str) -> tuple[Path, Path]:
        """Certificate and key for loopback, and for these names."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in ("localhost", *dns_names)]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name("kube-apiserver"), key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        return self._issue("server", builder, key)

    def issue_client(self, user: str, *groups: str) -> tuple[Path, Path]:
        """Certificate and key of `user` in `groups`."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(user, *groups), key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return self._issue(f"client-{user.replace(':', '-')}", builder, key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(VALID_FROM)
            .not_valid_after(VALID_UNTIL)
        )

    def _issue(
        self, stem: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey
    ) -> tuple[Path, Path]:
        return self._write(stem, builder.sign(self._key, hashes.SHA256())), self._write_key(stem, key)

    def _write(self, stem: str, certificate: x509.Certificate) -> Path:
        path = self._folder / f"{stem}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _write_key(self, stem: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self._folder / f"{stem}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                # kube-apiserver reads an elliptic signing key only in this form.
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return path


def _name(common_name: str, *organizations: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
