"""Creates keys, certificate requests and certificates: with `jwt` the only module that loads `cryptography`.

Import it inside functions, where a certificate is needed. Keys are EC P-256: every client supports them, and generating
one takes well under a millisecond.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podlife.api.names import check_dns_subdomain
from podlife.pki.credentials import KeyPair, RequestedCertificate, Subject, node_subject

_AUTHORITY_NAME = "podlife-ca"
_NODE = "system:node:"

# Usages that the cluster's signers sign, by their names in the certificates API.
_KEY_USAGES = {"digital signature": "digital_signature", "key encipherment": "key_encipherment"}
_PURPOSES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
_FLAGS = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
# Alternative names that are taken over from a request.
_NAMES = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)

_PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


def make_authority(begin: datetime, end: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY_NAME)])
    certificate = (
        _builder(name, name, key.public_key(), begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage("digital_signature", "key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _key_pair(certificate, key)


def sign(authority_pem: bytes, subject: Subject, begin: datetime, end: datetime) -> KeyPair:
    """Return a new key with its certificate: for serving if the subject has names, else for client authentication."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _key_pair(_sign(authority_pem, subject, key.public_key(), (begin, end)), key)


def sign_request(
    authority_pem: bytes, request_pem: bytes, subject: Subject, begin: datetime, end: datetime
) -> bytes:
    """Return a certificate of this subject for the key in a request; everything else in the request is ignored. Raises
    ValueError if the request is invalid or has another subject."""
    request = _load_request(request_pem)
    key = request.public_key()
    if not isinstance(key, _PublicKey) or not request.is_signature_valid:
        raise ValueError("request is not signed with its own key")
    if request.subject != _name(subject):
        raise ValueError(f"subject must be {_name(subject).rfc4514_string()}")
    return _sign(authority_pem, subject, key, (begin, end)).public_bytes(serialization.Encoding.PEM)


def read_request(request_pem: bytes) -> RequestedCertificate:
    """Raises ValueError if the request is invalid."""
    request = _load_request(request_pem)
    try:
        names = [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        found = _requested_names(request)
        others = [tuple(str(each.value) for each in found if isinstance(each, kind)) for kind in _NAMES]
    except (ValueError, x509.DuplicateExtension):
        raise ValueError("not a PEM certificate request") from None
    return RequestedCertificate(
        names[-1] if names else "", tuple(str(each.value) for each in groups), *others
    )


def sign_as_requested(
    authority_pem: bytes,
    authority_key_pem: bytes,
    request_pem: bytes,
    usages: Collection[str],
    begin: datetime,
    end: datetime,
) -> bytes:
    """Return a certificate with the subject, the key and the alternative names of the request, for these usages, which
    ends before the authority's. Raises ValueError."""
    request = _load_request(request_pem)
    key = request.public_key()
    if not isinstance(key, _PublicKey) or not request.is_signature_valid:
        raise ValueError("unable to verify certificate request signature")
    authority = x509.load_pem_x509_certificate(authority_pem)
    authority_key = serialization.load_pem_private_key(authority_key_pem, password=None)
    if not isinstance(authority_key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("unsupported key of the signing CA")
    last = authority.not_valid_after_utc
    if begin >= last:
        raise ValueError(f"the signer has expired: NotAfter={last}")
    flags = [_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES]
    purposes = [_PURPOSES[usage] for usage in usages if usage in _PURPOSES]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = (
        _builder(request.subject, authority.subject, key, begin, min(end, last))
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issuer, critical=False)
    )
    if flags:
        builder = builder.add_extension(_key_usage(*flags), critical=True)
    if names := _requested_names(request):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _requested_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        found = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [each for each in found if isinstance(each, _NAMES)]


def make_request(subject: Subject) -> tuple[bytes, bytes]:
    """Return a new key and a certificate request for it, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(subject))
    if subject.names:
        builder = builder.add_extension(_alternative_names(subject), critical=False)
    request = builder.sign(key, hashes.SHA256())
    return _private(key), request.public_bytes(serialization.Encoding.PEM)


def self_signed(node_name: str, names: tuple[str, ...], begin: datetime, end: datetime) -> bytes:
    """Return key and certificate in one PEM. It proves no identity, but encrypts the connection."""
    subject = node_subject(node_name, (node_name, *names))
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(subject), _name(subject), key.public_key(), begin, end)
        .add_extension(_alternative_names(subject), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _private(key) + certificate.public_bytes(serialization.Encoding.PEM)


def validity_of(pem: bytes) -> tuple[datetime, datetime]:
    """Return begin and end of the certificate's validity; raises ValueError if there is none."""
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def node_in_request(request_pem: bytes) -> str:
    """Return the name of the node that a request is for; raises ValueError if it is not for a node."""
    names = _load_request(request_pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[0].value) if len(names) == 1 else ""
    if not name.startswith(_NODE) or check_dns_subdomain(name.removeprefix(_NODE), prefix=False):
        raise ValueError(f"common name must be {_NODE}NAME")
    return name.removeprefix(_NODE)


def _load_request(request_pem: bytes) -> x509.CertificateSigningRequest:
    try:
        request = x509.load_pem_x509_csr(request_pem)
        # Both are parsed lazily, and may be invalid.
        _ = request.public_key(), request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("not a PEM certificate request") from None
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
        .add_extension(_key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
    )
    if subject.names:
        builder = builder.add_extension(_alternative_names(subject), critical=False)
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


def _alternative_names(subject: Subject) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(name) for name in subject.names])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*flags: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in flags for name in _FLAGS})


def _key_pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _private(key))


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
