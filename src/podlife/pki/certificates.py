"""Making keys and certificates: the only module that loads `cryptography`, and only when one is made.

Keys are EC P-256: every client knows them and they are made in well under a millisecond.
"""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podlife.api.names import check_dns_subdomain
from podlife.pki.ca import Credential, Subject

__all__ = ["make_authority", "node_in_request", "sign", "sign_request"]

_AUTHORITY_NAME = "podlife-ca"
_NODE = "system:node:"

_PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


def make_authority(begin: datetime, end: datetime) -> Credential:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY_NAME)])
    certificate = (
        _builder(name, name, key.public_key(), begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _credential(certificate, key)


def sign(authority_pem: bytes, subject: Subject, begin: datetime, end: datetime) -> Credential:
    """A key and its certificate: with names it may only serve, without it may only prove an identity."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _credential(_sign(authority_pem, subject, key.public_key(), (begin, end)), key)


def sign_request(
    authority_pem: bytes, request_pem: bytes, subject: Subject, begin: datetime, end: datetime
) -> bytes:
    """A certificate of this subject for the key in a request, whatever else stands in it, but that it must be from
    this subject. Raises ValueError where it is no request, or somebody else's."""
    request = _load_request(request_pem)
    key = request.public_key()
    if not isinstance(key, _PublicKey) or not request.is_signature_valid:
        raise ValueError("it is not signed with its own key")
    if request.subject != _name(subject):
        raise ValueError(f"its subject must be {_name(subject).rfc4514_string()}")
    return _sign(authority_pem, subject, key, (begin, end)).public_bytes(serialization.Encoding.PEM)


def node_in_request(request_pem: bytes) -> str:
    """The name of the node that a request is for; raises ValueError where it is for none."""
    names = _load_request(request_pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[0].value) if len(names) == 1 else ""
    if not name.startswith(_NODE) or check_dns_subdomain(name.removeprefix(_NODE), prefix=False):
        raise ValueError(f"its common name must be {_NODE} and the name of a node")
    return name.removeprefix(_NODE)


def _load_request(request_pem: bytes) -> x509.CertificateSigningRequest:
    try:
        request = x509.load_pem_x509_csr(request_pem)
        # Both are read only when they are asked for, and may not be readable.
        _ = request.public_key(), request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is not a certificate request in PEM") from None
    return request


def _sign(
    authority_pem: bytes, subject: Subject, key: _PublicKey, validity: tuple[datetime, datetime]
) -> x509.Certificate:
    authority = x509.load_pem_x509_certificate(authority_pem)
    authority_key = serialization.load_pem_private_key(authority_pem, password=None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    usage = ExtendedKeyUsageOID.SERVER_AUTH if subject.names else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(_name(subject), authority.subject, key, *validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
    )
    if subject.names:
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in subject.names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(authority_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: _PublicKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _credential(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Credential:
    return Credential(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
