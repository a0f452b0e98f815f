"""Kubeconfig files with embedded credentials: everything a client needs, in one private file."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass

from podlife.pki.types import KeyPair


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
