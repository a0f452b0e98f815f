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

from podlife.api.yaml_documents import yaml_to_json
from podlife.client import Client, Connection, Flags, TokenAuth, load
from podlife.clock import Clock, SystemClock
from podlife.errors import ConfigError, ForbiddenError, PodlifeError, UnauthorizedError
from podlife.pki import ClusterAccess, KeyPair, format_kubeconfig, node_subject, write_private
from podlife.pki.csr import KUBELET_CLIENT, request_certificate

_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CONNECT_SECONDS = 10.0
_SIGN_SECONDS = 120.0
_POLL_SECONDS = 1.0
_MOST_BYTES = 1024 * 1024
# A certificate that expires sooner is not reused.
_LEAST_VALID = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """`where` is a join file, or the URL of a server; a URL requires a token and a way to verify the server."""

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
    pair = await _signed(settings.node_name, connection)
    access = ClusterAccess(
        connection.server,
        connection.certificate_authority,
        f"system:node:{settings.node_name}",
        credential=pair,
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
                f"--join {where}: file not found; `podlife up` shows the path of its join file, or specify https://…"
            )
        return
    if settings.ca_hash and not _HASH.fullmatch(settings.ca_hash):
        raise ConfigError(
            f"invalid --ca-hash {settings.ca_hash!r}: expected sha256: and 64 hexadecimal digits"
        )
    if not settings.token:
        raise ConfigError(f"--join {where} requires --token, which is in the join file of `podlife up`")
    if not settings.ca_hash and not settings.certificate_authority:
        raise ConfigError(
            f"--join {where} requires --ca-hash or --certificate-authority to verify the server"
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
            raise ConfigError(f"{where} has another certificate authority ({found}) than --ca-hash specifies")
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
            f"{where} does not publish its certificate authority ({answer.status}): use its join file instead"
        )
    return _authority_in(where, body)


def _authority_in(where: str, body: bytes) -> bytes:
    try:
        text = json.loads(body)["data"]["kubeconfig"]
        cluster = json.loads(yaml_to_json(text.encode()))["clusters"][0]["cluster"]
        return base64.b64decode(cluster["certificate-authority-data"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise PodlifeError(f"{where} publishes an invalid certificate authority: use its join file") from None


async def _signed(name: str, connection: Connection) -> KeyPair:
    """A new private key with the certificate that the cluster signs for it."""
    async with Client.connect(connection) as client:
        try:
            return await request_certificate(
                client,
                KUBELET_CLIENT,
                node_subject(name),
                wait_seconds=_SIGN_SECONDS,
                most_poll_seconds=_POLL_SECONDS,
            )
        except (UnauthorizedError, ForbiddenError):
            raise ConfigError(
                f"{connection.server} rejected the token, which is valid only while `podlife up` runs: "
                "use its newest join file"
            ) from None


def _is_valid(kept: Path, where: str, clock: Clock) -> bool:
    """Whether an earlier join is still valid, for the same server and CA as far as they are known."""
    if not kept.is_file():
        return False
    from podlife.pki.certificates import validity_of

    try:
        connection = load(Flags(kubeconfig=str(kept)))
        _, end = validity_of(connection.client_certificate)
    except (PodlifeError, ValueError):
        return False
    if end - clock.now() < _LEAST_VALID:
        return False
    if _is_url(where):
        return connection.server == where
    meant = _load_file(where)
    return (connection.server, connection.certificate_authority) == (
        meant.server,
        meant.certificate_authority,
    )
