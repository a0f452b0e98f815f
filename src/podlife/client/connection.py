"""Connection parameters of an API server: one frozen value, wherever it was read from.

Plain data: nothing connects and no login runs before the first request. Secrets never appear in a `repr`. Invalid
parameters raise ConfigError: one line with the origin, the problem and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podlife.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TokenAuth:
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenFileAuth:
    """A token file that another process renews; it is read again periodically."""

    path: Path


@dataclass(frozen=True, slots=True)
class BasicAuth:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecAuth:
    """An exec plugin. `origin` is where it was configured, for messages and relative paths."""

    command: str
    api_version: str
    origin: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    # Cluster information for the plugin, if `provideClusterInfo` is set.
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class ProviderAuth:
    """A legacy `auth-provider`, handled by kubernetes_asyncio.

    `kubeconfig` is the merged configuration, `context` the context to use."""

    name: str
    context: str
    origin: str
    kubeconfig: Mapping[str, Any] = field(repr=False)


Auth = TokenAuth | TokenFileAuth | BasicAuth | ExecAuth | ProviderAuth


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything a transport needs to know. Certificates and keys are PEM."""

    server: str
    namespace: str = "default"
    auth: Auth | None = None
    certificate_authority: bytes = field(default=b"", repr=False)
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    is_insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    # Header names and values, in order: groups may repeat.
    impersonation: tuple[tuple[str, str], ...] = ()
    compression: bool = True
    # Where it was read from, for messages: "context dev of /home/me/.kube/config".
    origin: str = "the given server"

    def __post_init__(self) -> None:
        if not _is_address(self.server):
            raise ConfigError(
                f"{self.origin}: invalid server address {_without_secrets(self.server)!r}: expected https://HOST:PORT"
            )
        if "@" in urlsplit(self.server).netloc:
            # It would appear in every message about the server.
            raise ConfigError(
                f"{self.origin}: server address {_without_secrets(self.server)!r} must not contain a user; "
                "configure a user instead"
            )
        if self.is_insecure and self.certificate_authority:
            raise ConfigError(
                f"{self.origin}: certificate-authority and insecure-skip-tls-verify are mutually exclusive; "
                "remove one of them"
            )
        if self.tls_server_name and not _is_host(self.tls_server_name):
            raise ConfigError(f"{self.origin}: invalid tls-server-name: expected a host name")
        if bool(self.client_certificate) != bool(self.client_key):
            missing, given = ("key", "certificate") if self.client_certificate else ("certificate", "key")
            raise ConfigError(f"{self.origin}: client {given} without client {missing}; specify both")
        if self.proxy_url and not _is_address(self.proxy_url):
            raise ConfigError(
                f"{self.origin}: unsupported proxy; set proxy-url or HTTPS_PROXY to an http:// or https:// URL"
            )


def _is_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        # Accessing the port parses it: an invalid one raises.
        is_complete = url.scheme in ("http", "https") and _is_host(url.hostname or "") and url.port != 0
    except ValueError:
        return False
    return is_complete and not re.search(r"[\x00-\x1f\x7f]", text) and not re.search(r"\s", url.netloc)


def _is_host(name: str) -> bool:
    """Whether a name is an IP address, or a host name with labels of valid length."""
    try:
        labels = (name if name.isascii() else name.encode("idna").decode()).removesuffix(".").split(".")
    except UnicodeError:
        return False
    return name.isprintable() and (":" in name or all(0 < len(label) < 64 for label in labels))


def _without_secrets(address: str) -> str:
    return re.sub(r"//.*@", "//…@", address)


def read_file(path: Path, origin: str) -> bytes:
    """The content of a file from the configuration; raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{origin}: cannot read {path}: {reason}; check the path") from None


def is_this_machine(host: str) -> bool:
    """Whether the host is a loopback address or localhost. Other names may resolve to anything."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
