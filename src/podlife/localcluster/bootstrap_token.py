"""How further nodes come to a cluster of `podlife up`: a token that lasts as long as it runs, and a file that has all a
node needs to know, for `podlife node --join`.

As in a cluster made by kubeadm: the token gives the right to ask for a node's certificate and no other, and what a node
must know before it can trust the server stands in the config map kube-public/cluster-info, to be compared with the hash
of the authority.
"""

from __future__ import annotations

import secrets
import socket
import string
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.apiserver.authn import (
    BOOTSTRAPPERS,
    CLUSTER_INFO,
    UserInfo,
    format_tokens,
    parse_tokens,
)
from podlife.client import CONFIG_MAPS, Client
from podlife.errors import AlreadyExistsError
from podlife.pki import ClusterAccess, format_kubeconfig, write_private

__all__ = ["Joining", "authority_hash", "reachable_url"]

_USER = "system:bootstrap:"
_LETTERS = string.ascii_lowercase + string.digits


class Joining:
    """`open` lets nodes join, `close` ends that; those that have joined stay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tokens = folder / "tokens.csv"
        self.file = folder / "join.kubeconfig"

    def open(self, url: str) -> None:
        """Make a token of this run, and the file."""
        identity, secret = _word(6), _word(16)
        token = f"{identity}.{secret}"
        user = UserInfo(f"{_USER}{identity}", groups=(BOOTSTRAPPERS,))
        write_private(self._tokens, format_tokens([*self._others(), (token, user)]).encode())
        flags = f"--join {url} --token {token} --ca-hash {authority_hash(self._authority)}"
        access = ClusterAccess(url, self._authority, user.name, token=token)
        # Whoever cannot copy the file to another machine may type what stands at its top.
        write_private(self.file, f"# podlife node {flags}\n{format_kubeconfig(access)}".encode())

    def close(self) -> None:
        self.file.unlink(missing_ok=True)
        try:
            known = parse_tokens(self._tokens.read_text(encoding="utf-8"))
            others = self._others()
        except (OSError, ValueError):
            # A server does not start with tokens that it cannot read, and says so.
            return
        if others != known:
            write_private(self._tokens, format_tokens(others).encode())

    async def publish(self, client: Client, url: str) -> None:
        """What may be read without any token."""
        namespace, name = CLUSTER_INFO
        text = format_kubeconfig(ClusterAccess(url, self._authority, ""))
        info: Object = {"metadata": {"name": name, "namespace": namespace}, "data": {"kubeconfig": text}}
        try:
            await client.create(CONFIG_MAPS, info, namespace)
        except AlreadyExistsError:
            await client.patch(CONFIG_MAPS, name, {"data": info["data"]}, namespace)

    @property
    def _authority(self) -> bytes:
        return (self._folder / "pki" / "ca.crt").read_bytes()

    def _others(self) -> list[tuple[str, UserInfo]]:
        """Tokens of an `up` that was killed count no more."""
        known = parse_tokens(self._tokens.read_text(encoding="utf-8"))
        return [(token, user) for token, user in known if not user.name.startswith(_USER)]


def _word(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def reachable_url(url: str, bind: str, names: tuple[str, ...]) -> str:
    """Where nodes of other machines find a server that listens on every address."""
    try:
        is_everywhere = ip_address(bind).is_unspecified
    except ValueError:
        is_everywhere = False
    if not is_everywhere:
        return url
    host = names[0] if names else socket.gethostname()
    return f"https://{f'[{host}]' if ':' in host else host}:{urlsplit(url).port}"


def authority_hash(certificate: bytes) -> str:
    """Of an authority's public key, as kubeadm writes it. Raises ValueError where it is no certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(certificate).public_key()
    return f"sha256:{sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"
