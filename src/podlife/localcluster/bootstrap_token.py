"""The bootstrap token of a local cluster, valid while it runs, and the join file for `podlife node --join`.

As with kubeadm, the token permits requesting a node's certificate and nothing else, and what a node must know before it
can trust the server is in the config map kube-public/cluster-info, to be compared with the hash of the CA.
"""

from __future__ import annotations

import secrets
import socket
import string
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.apiserver.authn import BOOTSTRAPPERS, CLUSTER_INFO, UserInfo, format_tokens, parse_tokens
from podlife.client import CONFIG_MAPS, Client
from podlife.daemons.join import ca_hash
from podlife.errors import AlreadyExistsError
from podlife.pki import ClusterAccess, format_kubeconfig, write_private

_USER = "system:bootstrap:"
_LETTERS = string.ascii_lowercase + string.digits


class BootstrapToken:
    """Nodes that have joined stay when the token is revoked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tokens = folder / "tokens.csv"
        self.join_file = folder / "join.kubeconfig"

    def issue(self, url: str) -> None:
        """Create a token for this run, and the join file."""
        identity, secret = _word(6), _word(16)
        token = f"{identity}.{secret}"
        user = UserInfo(f"{_USER}{identity}", groups=(BOOTSTRAPPERS,))
        write_private(self._tokens, format_tokens([*self._others(), (token, user)]).encode())
        flags = f"--join {url} --token {token} --ca-hash {ca_hash(self._authority)}"
        access = ClusterAccess(url, self._authority, user.name, token=token)
        # A user who cannot copy the file to another machine may type its first line there.
        write_private(self.join_file, f"# podlife node {flags}\n{format_kubeconfig(access)}".encode())

    def revoke(self) -> None:
        self.join_file.unlink(missing_ok=True)
        try:
            known = parse_tokens(self._tokens.read_text(encoding="utf-8"))
            others = self._others()
        except (OSError, ValueError):
            # A server reports tokens that it cannot read, and does not start.
            return
        if others != known:
            write_private(self._tokens, format_tokens(others).encode())

    async def publish(self, client: Client, url: str) -> None:
        """Publish what a node may read without a token."""
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
        """All tokens but bootstrap tokens."""
        known = parse_tokens(self._tokens.read_text(encoding="utf-8"))
        return [(token, user) for token, user in known if not user.name.startswith(_USER)]


def _word(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def reachable_url(url: str, bind: str, names: tuple[str, ...]) -> str:
    """The URL of the server for nodes on other machines, even if it listens on every address."""
    try:
        is_everywhere = ip_address(bind).is_unspecified
    except ValueError:
        is_everywhere = False
    if not is_everywhere:
        return url
    host = names[0] if names else socket.gethostname()
    return f"https://{f'[{host}]' if ':' in host else host}:{urlsplit(url).port}"
