"""Identities of the server itself: its certificates, and the tokens of admin and controllers.

Nodes and other users get client certificates on demand; the server need not know them beforehand.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from podlife.apiserver.authn import ADMIN, CONTROLLERS, format_tokens, read_token
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.pki import (
    CertificateAuthority,
    ClusterAccess,
    Subject,
    format_kubeconfig,
    names_for,
    write_private,
)

_USERS = {"admin": ADMIN, "controllers": CONTROLLERS}
# The only subject whose certificate lets it name users to other API servers.
FRONT_PROXY = Subject("front-proxy-client")
_KUBELET_CLIENT = Subject("kube-apiserver-kubelet-client", ("system:masters",))


@dataclass(frozen=True, slots=True)
class Identities:
    """The server's own tokens and certificates. A certificate that is missing or about to expire is made on request."""

    ca: CertificateAuthority
    # Signs nothing else: other API servers believe its certificates about users.
    front_proxy_ca: CertificateAuthority
    tokens_file: Path
    names: tuple[str, ...]

    @property
    def tokens_key_file(self) -> Path:
        """The private key that signs tokens of service accounts."""
        return self.tokens_file.parent / "pki" / "sa.key"

    def serving_file(self) -> Path:
        return self.ca.ensure("apiserver.pem", Subject("kube-apiserver", names=self.names))

    def kubelet_client_file(self) -> Path:
        return self.ca.ensure("apiserver-kubelet-client.pem", _KUBELET_CLIENT)

    def front_proxy_file(self) -> Path:
        return self.front_proxy_ca.ensure("front-proxy-client.pem", FRONT_PROXY)


def prepare_identities(settings: ApiServerSettings, folder: Path, clock: Clock) -> Identities:
    """Create or renew certificates and tokens as needed; raises ConfigError if the folder cannot be used.

    A server with a given certificate needs none of its own to start, and starts faster without them."""
    identities = Identities(
        CertificateAuthority(folder / "pki", clock),
        CertificateAuthority(folder / "pki" / "front-proxy", clock),
        folder / "tokens.csv",
        names_for(settings.bind, (*settings.names, settings.advertise_address)),
    )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not identities.tokens_file.exists():
            text = format_tokens((secrets.token_urlsafe(32), user) for user in _USERS.values())
            write_private(identities.tokens_file, text.encode())
        if not settings.tls_cert_file:
            identities.serving_file()
            identities.kubelet_client_file()
            identities.front_proxy_file()
    except OSError as error:
        raise ConfigError(f"the data folder {folder} cannot be used: {error.strerror}") from error
    return identities


def write_kubeconfigs(folder: Path, url: str, identities: Identities) -> None:
    """Write one private kubeconfig for each identity, such as `admin.kubeconfig`."""
    authority = identities.ca.authority_file.read_bytes()
    for identity, user in _USERS.items():
        path = folder / f"{identity}.kubeconfig"
        token = read_token(identities.tokens_file, user.name)
        text = format_kubeconfig(ClusterAccess(url, authority, user.name, token=token)).encode()
        if not path.exists() or path.read_bytes() != text:
            write_private(path, text)
