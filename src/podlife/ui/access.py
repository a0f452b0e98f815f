"""Who may use the page: pure decisions about a request's head.

The address has a random token; it is exchanged for a cookie that no script can read and no other site can send. The
page is under a random path, and the cookie belongs to that: other ports of the host do not get it. Host is checked
against the addresses of this server, so that a foreign name that resolves here (DNS rebinding) reaches nothing, and
Origin against the page's own, so that another page cannot ask or order anything.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "podlife",
}
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_MOST_COOKIE = 4096


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    why: str


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """`host` is where the server listens, `port` the port that it got."""

    host: str
    port: int
    is_tls: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def secret(self) -> str:
        """The value of the cookie. It follows from the token: open pages outlive a restart that keeps the token."""
        return self._derived(b"cookie of podlife ui")

    @property
    def prefix(self) -> str:
        """The path that everything is under."""
        return f"/{self._derived(b'path of podlife ui')[:32]}"

    def _derived(self, purpose: bytes) -> str:
        return hmac.digest(self.token.encode(), purpose, "sha256").hex()

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        host = "127.0.0.1" if self.host in ("", "0.0.0.0", "::") else self.host  # noqa: S104 - not bound here
        host = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{host}:{self.port}/?token={self.token}"

    @property
    def cookie_name(self) -> str:
        # Cookies do not distinguish ports: pages of one machine must not replace each other's.
        return f"podlife-ui-{self.port}"

    @property
    def cookie(self) -> str:
        secure = "; Secure" if self.is_tls else ""
        return f"{self.cookie_name}={self.secret}; HttpOnly; SameSite=Strict; Path={self.prefix}/{secure}"

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def is_known(self, headers: Mapping[str, str]) -> bool:
        """Whether the request has the cookie. Another server of this host may have set one of the same name."""
        pairs = (each.strip().partition("=") for each in headers.get("Cookie", "")[:_MOST_COOKIE].split(";"))
        return any(
            name == self.cookie_name
            and hmac.compare_digest(value.encode(errors="replace"), self.secret.encode())
            for name, _, value in pairs
        )

    def refusal_of(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why the request must not be served, with or without the cookie."""
        host = headers.get("Host", "")
        if not self._is_own_host(host):
            return Refusal(
                421, "this server does not answer under that name: open the address that was printed"
            )
        if method not in ("GET", "HEAD", "POST"):
            return Refusal(405, "method not allowed")
        origin = headers.get("Origin")
        if origin is not None and origin != f"{self.scheme}://{host}":
            return Refusal(403, "requests of other pages are refused")
        if path.startswith("/api/") and headers.get("Sec-Fetch-Site", "same-origin") not in (
            "same-origin",
            "none",
        ):
            return Refusal(403, "requests of other pages are refused")
        if method == "POST" and origin is None:
            return Refusal(403, "a POST must name its origin")
        return None

    def _is_own_host(self, host: str) -> bool:
        try:
            found = urlsplit(f"//{host}")
            port = found.port or (443 if self.is_tls else 80)
        except ValueError:
            return False
        if found.hostname is None or found.username is not None or found.path or port != self.port:
            return False
        if found.hostname in (*_LOOPBACK_NAMES, self.host):
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(found.hostname)
        except ValueError:
            return found.hostname == socket.gethostname().lower()
        return True
