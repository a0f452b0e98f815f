"""Making keys, requests and certificates: the only module here that loads `cryptography`, and only when needed."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["make_request", "self_signed", "validity_of"]


def make_request(node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
    """A new key, and a request to sign it, both PEM: of the form that `kubernetes.io/kubelet-serving` demands."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(node_name))
        .add_extension(_alternatives(node_name, names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _private(key), request.public_bytes(serialization.Encoding.PEM)


def self_signed(node_name: str, names: tuple[str, ...], begin: datetime, end: datetime) -> bytes:
    """Key and certificate in one PEM. Signed by nobody else: it proves nothing but keeps listeners out."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_subject(node_name))
        .issuer_name(_subject(node_name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(_alternatives(node_name, names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _private(key) + certificate.public_bytes(serialization.Encoding.PEM)


def validity_of(pem: bytes) -> tuple[datetime, datetime]:
    """From when until when the certificate in it holds; raises ValueError where there is none."""
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def _subject(node_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node_name}"),
        ]
    )


def _alternatives(node_name: str, names: tuple[str, ...]) -> x509.SubjectAlternativeName:
    every = dict.fromkeys((node_name, *names))
    return x509.SubjectAlternativeName([_general_name(name) for name in every])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
