"""The identities a server has of its own: its certificates, and the tokens of admin and controllers.

Nodes and further users get client certificates on demand; the server need not know them beforehand.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from podlife.apiserver.authn.authenticator import (
    ADMIN,
    CONTROLLERS,
    User,
    format_tokens,
    read_token,
)
from podlife.apiserver.settings import Settings
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.pki.ca import (
    Pki,
    Subject,
    names_for,
    write_private,
)
from podlife.pki.kubeconfig import Access, format_kubeconfig

__all__ = ["Identities", "prepare_identities", "write_kubeconfigs"]

_USERS = {"admin": ADMIN, "controllers": CONTROLLERS}
_AGENT_CLIENT = Subject("kube-apiserver-kubelet-client", ("system:masters",))


@dataclass(frozen=True, slots=True)
class Identities:
    """Where they are kept."""

    pki: Pki
    tokens_file: Path
    serving_file: Path
    agent_client_file: Path


def prepare_identities(settings: Settings, folder: Path, clock: Clock) -> Identities:
    """Make or renew what is missing; raises ConfigError when the folder cannot be used."""
    pki = Pki(folder / "pki", clock)
    names = names_for(settings.bind, settings.names)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tokens_file = folder / "tokens.csv"
        if not tokens_file.exists():
            text = format_tokens((secrets.token_urlsafe(32), user) for user in _USERS.values())
            write_private(tokens_file, text.encode())
        return Identities(
            pki,
            tokens_file,
            pki.ensure("apiserver.pem", Subject("kube-apiserver", names=names)),
            pki.ensure("apiserver-kubelet-client.pem", _AGENT_CLIENT),
        )
    except OSError as error:
        raise ConfigError(f"the data folder {folder} cannot be used: {error.strerror}") from error


def write_kubeconfigs(folder: Path, url: str, identities: Identities) -> None:
    """One private kubeconfig for each identity, such as `admin.kubeconfig`."""
    authority = identities.pki.authority_file.read_bytes()
    for identity, user in _USERS.items():
        path = folder / f"{identity}.kubeconfig"
        text = _kubeconfig(url, authority, user, identities.tokens_file).encode()
        if not path.exists() or path.read_bytes() != text:
            write_private(path, text)


def _kubeconfig(url: str, authority: bytes, user: User, tokens_file: Path) -> str:
    token = read_token(tokens_file, user.name)
    return format_kubeconfig(Access(url, authority, user.name, token=token))
