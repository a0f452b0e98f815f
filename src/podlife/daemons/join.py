"""TLS bootstrap of a node: exchange a token for a client certificate of the node's own, once.

The server is trusted by its CA, which is in the join file, or is fetched from the server and compared with a hash.
Nothing secret is sent before that. The private key is generated here and never leaves; certificate and key are kept in
the node's data directory, readable by its owner only, and reused while they are valid.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import re
import ssl
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.api.yaml_documents import yaml_to_json
from podlife.client import Client, Connection, Flags, Ref, TokenAuth, load
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError, ForbiddenError, PodlifeError, UnauthorizedError
from podlife.pki.ca import Credential, write_private
from podlife.pki.kubeconfig import Access, format_kubeconfig

_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_REQUESTS = Ref(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    namespaced=False,
    kind="CertificateSigningRequest",
)
_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CONNECT_SECONDS = 10.0
_SIGN_SECONDS = 120.0
_LOOK_SECONDS = 1.0
_MOST_BYTES = 1024 * 1024
# One that ends sooner is not begun with.
_LEAST_VALID = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """`where` is a join file, or the URL of a server; a URL needs a token and something to trust the server by."""

    node_name: str
    data: Path
    where: str
    token: str = ""
    ca_hash: str = ""
    certificate_authority: str = ""


async def run(settings: JoinSettings) -> Path:
    """The kubeconfig of the node, created if there is no valid one yet. Raises PodlifeError when the cluster refuses
    the node."""
    kubeconfig = settings.data / "kubeconfig"
    _check(settings)
    if _is_valid(kubeconfig, settings.where, SystemClock()):
        return kubeconfig
    connection = await asyncio.to_thread(_trusted, settings)
    key, certificate = await _signed(settings.node_name, connection)
    access = Access(
        connection.server,
        connection.certificate_authority,
        f"system:node:{settings.node_name}",
        credential=Credential(certificate, key),
    )
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(kubeconfig, format_kubeconfig(access).encode())
    except OSError as error:
        raise ConfigError(
            f"{settings.data} cannot be used: {error.strerror}; name another with --data"
        ) from None
    return kubeconfig


def ca_hash(certificate: bytes) -> str:
    """The hash of a CA's public key, as kubeadm writes it. Raises ValueError for what is not a certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(certificate).public_key()
    return f"sha256:{sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"


def _check(settings: JoinSettings) -> None:
    """Reject wrong settings before anything is sent."""
    where = settings.where
    if not _is_url(where):
        if not Path(where).expanduser().is_file():
            raise ConfigError(
                f"--join {where}: there is no such file; `podlife up` says where its join file is, or write https://…"
            )
        return
    if settings.ca_hash and not _HASH.fullmatch(settings.ca_hash):
        raise ConfigError(f"--ca-hash {settings.ca_hash!r} is none: write sha256: and 64 hexadecimal digits")
    if not settings.token:
        raise ConfigError(f"--join {where} needs --token: `podlife up` keeps it in its join file")
    if not settings.ca_hash and not settings.certificate_authority:
        raise ConfigError(
            f"--join {where} needs --ca-hash or --certificate-authority: without either anybody could be that server"
        )


def _is_url(where: str) -> bool:
    return where.startswith("https://")


def _load_file(where: str) -> Connection:
    return load(Flags(kubeconfig=str(Path(where).expanduser())))


def _trusted(settings: JoinSettings) -> Connection:
    """A connection to a server whose CA has been verified, with a token for it."""
    where = settings.where
    if not _is_url(where):
        return _load_file(where)
    if settings.certificate_authority:
        authority = _read(Path(settings.certificate_authority))
    else:
        authority = _fetch_authority(where)
        try:
            found = ca_hash(authority)
        except ValueError:
            found = "no certificate"
        if found != settings.ca_hash:
            raise ConfigError(
                f"{where} has another authority ({found}): it is not the server that --ca-hash means"
            )
    return Connection(where, auth=TokenAuth(settings.token), certificate_authority=authority, origin="--join")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--certificate-authority {path} cannot be read: {error.strerror}") from None


def _fetch_authority(where: str) -> bytes:
    """From a server that is not trusted yet: only a public document is requested."""
    parts = urlsplit(where)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    line = http.client.HTTPSConnection(
        parts.hostname or "", parts.port or 443, timeout=_CONNECT_SECONDS, context=context
    )
    try:
        line.request("GET", _INFO)
        answer = line.getresponse()
        body = answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise PodlifeError(f"{where} does not answer: {error}") from None
    finally:
        line.close()
    if answer.status != 200:
        raise PodlifeError(
            f"{where} does not tell its authority ({answer.status}): use its join file instead"
        )
    return _authority_in(where, body)


def _authority_in(where: str, body: bytes) -> bytes:
    try:
        text = json.loads(body)["data"]["kubeconfig"]
        cluster = json.loads(yaml_to_json(text.encode()))["clusters"][0]["cluster"]
        return base64.b64decode(cluster["certificate-authority-data"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise PodlifeError(f"what {where} tells of its authority cannot be read: use its join file") from None


async def _signed(name: str, connection: Connection) -> tuple[bytes, bytes]:
    """A private key, and the certificate that the cluster signs for it."""
    key, request = _make_request(name)
    async with Client.connect(connection) as client:
        try:
            async with asyncio.timeout(_SIGN_SECONDS):
                asked = await client.create(_REQUESTS, _signing_request(request))
                while (certificate := _decided(asked)) is None:
                    await asyncio.sleep(_LOOK_SECONDS)
                    asked = await client.get(_REQUESTS, asked["metadata"]["name"])
        except TimeoutError:
            raise PodlifeError(
                f"nobody has approved the certificate of node {name} in {_SIGN_SECONDS:.0f} s: "
                "`kubectl certificate approve` does"
            ) from None
        except (UnauthorizedError, ForbiddenError):
            raise ConfigError(
                f"{connection.server} does not take the token, which lasts as long as `podlife up` runs: "
                "take its newest join file"
            ) from None
    return key, certificate


def _make_request(name: str) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{name}"),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, request.public_bytes(serialization.Encoding.PEM)


def _signing_request(request: bytes) -> Object:
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": _SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }


def _decided(asked: Object) -> bytes | None:
    status = asked.get("status") or {}
    if text := status.get("certificate"):
        return base64.b64decode(text)
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed"):
            raise PodlifeError(f"the cluster gives no certificate: {condition.get('message')}")
    return None


def _is_valid(kept: Path, where: str, clock: Clock) -> bool:
    """Whether an earlier join is still valid, for the same server and CA as far as they are known."""
    if not kept.is_file():
        return False
    from cryptography import x509

    try:
        connection = load(Flags(kubeconfig=str(kept)))
        certificate = x509.load_pem_x509_certificate(connection.client_certificate)
    except (PodlifeError, ValueError):
        return False
    if certificate.not_valid_after_utc - clock.now() < _LEAST_VALID:
        return False
    if _is_url(where):
        return connection.server == where
    meant = _load_file(where)
    return (connection.server, connection.certificate_authority) == (
        meant.server,
        meant.certificate_authority,
    )
