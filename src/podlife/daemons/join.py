"""`podlife node --join`: from a token to an identity of the node's own, once; from then on the node has it.

The server is trusted by its authority, which stands in the join file, or is fetched from the server and compared with
the hash that the user has. Nothing secret is sent before that. The key is made here and never leaves; both certificate
and key are kept in the node's folder, for its owner only, and used again while they hold.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.yaml_documents import yaml_to_json
from podlife.cli.connection import ConnectionOptions
from podlife.client import Client, Connection, Flags, TokenAuth, load
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop as loop
from podlife.errors import ConfigError, ForbiddenError, PodlifeError, UnauthorizedError
from podlife.pki import ClusterAccess, KeyPair, format_kubeconfig, node_subject, write_private
from podlife.pki.csr import KUBELET_CLIENT, request_certificate

__all__ = ["join"]

_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CONNECT_SECONDS = 10.0
_SIGN_SECONDS = 120.0
_POLL_SECONDS = 1.0
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
        pair = loop.run(_signed(name, connection))
        access = ClusterAccess(
            connection.server,
            connection.certificate_authority,
            f"system:node:{name}",
            credential=pair,
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


async def _signed(name: str, connection: Connection) -> KeyPair:
    """A new key with the certificate that the cluster signs for it."""
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
                f"{connection.server} does not take the token, which lasts as long as `podlife up` runs: "
                "take its newest join file"
            ) from None


def _is_valid(kept: Path, where: str, clock: Clock) -> bool:
    """Whether an earlier join still holds, for the same server and authority as far as they are known."""
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
