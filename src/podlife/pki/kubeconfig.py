"""Kubeconfig files for the server's identities: everything a client needs, in one private file."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from podlife.pki.ca import Credential, write_private

__all__ = ["Access", "format_kubeconfig", "write_kubeconfig"]


@dataclass(frozen=True, slots=True)
class Access:
    """A server, the authority it is known by, and one way to prove who is asking."""

    server: str
    authority: bytes
    user: str
    token: str = ""
    credential: Credential | None = None

    def __repr__(self) -> str:
        return f"Access({self.server!r}, {self.user!r})"


def format_kubeconfig(access: Access) -> str:
    """The text of the file. JSON strings are YAML strings, so nothing in it needs a YAML library."""
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


def write_kubeconfig(path: Path, access: Access) -> None:
    write_private(path, format_kubeconfig(access).encode())


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
