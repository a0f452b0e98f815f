"""`podlife node --join`: from a token to an identity of the node's own, once; from then on the node has it.

The server is trusted by its authority, which stands in the join file, or is fetched from the server and compared with
the hash that the user has. Nothing secret is sent before that. The key is made here and never leaves; both certificate
and key are kept in the node's folder, for its owner only, and used again while they hold.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import re
import ssl
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.api.yaml_documents import yaml_to_json
from podlife.cli.connection import ConnectionOptions
from podlife.client import Client, Connection, Flags, Ref, TokenAuth, load
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop as loop
from podlife.errors import ConfigError, ForbiddenError, PodlifeError, UnauthorizedError
from podlife.pki.ca import Credential, write_private
from podlife.pki.kubeconfig import Access, format_kubeconfig

__all__ = ["join"]

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


def join(name: str, folder: Path, where: str, ca_hash: str, options: ConnectionOptions) -> ConnectionOptions:
    """How to connect as this node. `where` is a join file, or the URL of a server, with a token in the options. Raises
    PodlifeError when the cluster does not let it in."""
    kept = folder / "kubeconfig"
    clock = SystemClock()
    _check(where, ca_hash, options)
    if not _is_valid(kept, where, clock):
        connection = _trusted(where, ca_hash, options)
        key, certificate = loop.run(_signed(name, connection))
        access = Access(
            connection.server,
            connection.certificate_authority,
            f"system:node:{name}",
            credential=Credential(certificate, key),
        )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(kept, format_kubeconfig(access).encode())
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be used: {error.strerror}; name another with --data"
            ) from None
    return replace(options, kubeconfig=str(kept), context="", server="", token="", certificate_authority="")


def _check(where: str, ca_hash: str, options: ConnectionOptions) -> None:
    """What is wrong with the flags is said before anything is asked."""
    if not _is_url(where):
        if not Path(where).expanduser().is_file():
            raise ConfigError(
                f"--join {where}: there is no such file; `podlife up` says where its join file is, or write https://…"
            )
        return
    if ca_hash and not _HASH.fullmatch(ca_hash):
        raise ConfigError(f"--ca-hash {ca_hash!r} is none: write sha256: and 64 hexadecimal digits")
    if not options.token:
        raise ConfigError(f"--join {where} needs --token: `podlife up` keeps it in its join file")
    if not ca_hash and not options.certificate_authority:
        raise ConfigError(
            f"--join {where} needs --ca-hash or --certificate-authority: without either anybody could be that server"
        )


def _is_url(where: str) -> bool:
    return where.startswith("https://")


def _load_file(where: str) -> Connection:
    return load(Flags(kubeconfig=str(Path(where).expanduser())))


def _trusted(where: str, ca_hash: str, options: ConnectionOptions) -> Connection:
    """A server that is known to be the right one, and a token for it."""
    if not _is_url(where):
        return _load_file(where)
    if options.certificate_authority:
        authority = _read(Path(options.certificate_authority))
    else:
        authority = _fetch_authority(where)
        from podlife.localcluster.bootstrap_token import authority_hash

        try:
            found = authority_hash(authority)
        except ValueError:
            found = "no certificate"
        if found != ca_hash:
            raise ConfigError(
                f"{where} has another authority ({found}): it is not the server that --ca-hash means"
            )
    return Connection(where, auth=TokenAuth(options.token), certificate_authority=authority, origin="--join")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--certificate-authority {path} cannot be read: {error.strerror}") from None


def _fetch_authority(where: str) -> bytes:
    """From a server that is not trusted yet: nothing but a public document is asked of it."""
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
    """A key, and the certificate that the cluster gives for it."""
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
    """Whether an earlier join still holds, for the same server and authority as far as they are known."""
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
