"""Credentials: subjects of certificates, key pairs, and kubeconfig files with everything a client needs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a certificate. With `names` the certificate is for serving, without for client authentication."""

    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def node_subject(node_name: str, names: Iterable[str] = ()) -> Subject:
    return Subject(f"system:node:{node_name}", ("system:nodes",), tuple(dict.fromkeys(names)))


@dataclass(frozen=True, slots=True)
class RequestedCertificate:
    """What a certificate request asks for."""

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A server, its CA and one way to authenticate."""

    server: str
    authority: bytes
    user: str
    token: str = ""
    credential: KeyPair | None = None

    def __repr__(self) -> str:
        return f"ClusterAccess({self.server!r}, {self.user!r})"


def format_kubeconfig(access: ClusterAccess) -> str:
    """Format the kubeconfig. JSON strings are YAML strings, so no YAML library is needed."""
    secret = f"token: {json.dumps(access.token)}"
    if access.credential is not None:
        secret = (
            f"client-certificate-data: {_base64(access.credential.certificate)}\n"
            f"    client-key-data: {_base64(access.credential.key)}"
        )
    user = json.dumps(access.user)
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: podlife
  cluster:
    server: {json.dumps(access.server)}
    certificate-authority-data: {_base64(access.authority)}
users:
- name: {user}
  user:
    {secret}
contexts:
- name: podlife
  context:
    cluster: podlife
    user: {user}
current-context: podlife
"""


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
