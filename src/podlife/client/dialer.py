"""Opens connections: TCP, TLS, and through an HTTP proxy if one is configured.

Every failure before a request is sent is a `NotSentError` with a one-line reason that says whether a retry can help.
Python loads a client's key from files only, so an inline key passes through a private temporary file that is removed
before the first connection.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote, unquote, urlsplit

from podlife.client.connection import Connection
from podlife.client.http_connection import HttpConnection
from podlife.client.transport import NotSentError
from podlife.errors import ConfigError

_MOST_PROXY_ANSWER = 1 << 14
# Valid characters of a path; a percent sign, because the path is already encoded.
_PATH_SAFE = "/:@!$&'()*+,;=-._~%"


@dataclass(frozen=True, slots=True)
class Proxy:
    host: str
    port: int
    is_tls: bool
    # The value of Proxy-Authorization; empty for none.
    authorization: str


@dataclass(frozen=True, slots=True)
class DialTarget:
    """The destination of requests. `origin` is for messages; `prefix` precedes every path."""

    origin: str
    host: str
    port: int
    is_tls: bool
    server_name: str
    host_header: str
    prefix: str
    proxy: Proxy | None

    @property
    def is_tunnelled(self) -> bool:
        """Whether the proxy tunnels bytes (TLS); otherwise it receives the requests themselves."""
        return self.proxy is not None and self.is_tls


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS contexts for the server and, if it uses TLS, for the proxy."""

    server: ssl.SSLContext | None
    proxy: ssl.SSLContext | None


def target_of(connection: Connection) -> DialTarget:
    url = urlsplit(connection.server)
    is_tls = url.scheme == "https"
    host = url.hostname or ""
    path = quote(url.path.rstrip("/"), safe=_PATH_SAFE)
    origin = f"{url.scheme}://{url.netloc}{path}"
    proxy = _proxy_of(connection.proxy_url) if connection.proxy_url else None
    return DialTarget(
        origin=origin,
        host=host,
        port=url.port or (443 if is_tls else 80),
        is_tls=is_tls,
        server_name=connection.tls_server_name or host,
        host_header=url.netloc.rpartition("@")[2],
        prefix=origin if proxy is not None and not is_tls else path,
        proxy=proxy,
    )


def _proxy_of(text: str) -> Proxy:
    url = urlsplit(text)
    is_tls = url.scheme == "https"
    authorization = ""
    if url.username is not None:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}"
        authorization = f"Basic {base64.b64encode(user.encode()).decode()}"
    return Proxy(url.hostname or "", url.port or (443 if is_tls else 80), is_tls, authorization)


def tls_for(connection: Connection, target: DialTarget, identity: tuple[bytes, bytes]) -> Tls:
    """A certificate and key given here (a plugin's) replace the configured ones."""
    return Tls(
        server=_tls_context(connection, *identity) if target.is_tls else None,
        proxy=ssl.create_default_context() if target.proxy is not None and target.proxy.is_tls else None,
    )


def _tls_context(connection: Connection, certificate: bytes, key: bytes) -> ssl.SSLContext:
    try:
        authority = connection.certificate_authority.decode("ascii") or None
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{connection.origin}: the certificate authority is not PEM; check certificate-authority"
        ) from None
    # As Go: any certificate in the bundle is trusted, and self-made cluster CAs need not have every extension that
    # Python 3.13 requires.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As Go: no renegotiation.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    if connection.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = certificate or connection.client_certificate, key or connection.client_key
    if certificate:
        _load_identity(context, certificate, key, connection.origin)
    return context


def _load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes, origin: str) -> None:
    # Only here: most clients have no certificate.
    import tempfile

    def no_password() -> str:
        raise ConfigError(f"{origin}: the client key is encrypted; decrypt it first")

    # The directory has mode 0700 and the file 0600, so other users can never open it.
    with tempfile.TemporaryDirectory(prefix="podlife-") as folder:
        path = Path(folder) / "identity.pem"
        path.touch(mode=0o600)
        path.write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(path, password=no_password)
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"{origin}: the client certificate and key are not PEM or do not belong together; renew them"
            ) from None


async def connect(target: DialTarget, tls: Tls, most_buffered: int) -> HttpConnection:
    """Open a connection. Raises NotSentError."""
    if target.proxy is not None:
        return await _connect_through(target.proxy, target, tls, most_buffered)
    try:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: HttpConnection(most_buffered),
            target.host,
            target.port,
            ssl=tls.server,
            server_hostname=target.server_name if tls.server is not None else None,
        )
    except OSError as error:
        raise _not_connected(error, target.origin) from None
    return connection


async def _connect_through(proxy: Proxy, target: DialTarget, tls: Tls, most_buffered: int) -> HttpConnection:
    loop = asyncio.get_running_loop()
    make = _Tunnel if target.is_tunnelled else lambda: HttpConnection(most_buffered)
    try:
        transport, protocol = await loop.create_connection(make, proxy.host, proxy.port, ssl=tls.proxy)
    except OSError as error:
        raise _no_proxy(target, _described(error)) from None
    if isinstance(protocol, HttpConnection):
        return protocol
    try:
        await cast(_Tunnel, protocol).ask(target, proxy)
        connection = HttpConnection(most_buffered)
        assert tls.server is not None
        secured = await loop.start_tls(transport, connection, tls.server, server_hostname=target.server_name)
    except BaseException as error:
        transport.abort()
        if isinstance(error, OSError):
            raise _not_connected(error, target.origin) from None
        raise
    assert secured is not None
    connection.connection_made(secured)
    return connection


class _Tunnel(asyncio.Protocol):
    """Requests a tunnel from a proxy; data after its response belongs to the TLS layer."""

    def __init__(self) -> None:
        self._answer = b""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def ask(self, target: DialTarget, proxy: Proxy) -> None:
        assert self._transport is not None
        host = f"[{target.host}]" if ":" in target.host else target.host
        lines = [f"CONNECT {host}:{target.port} HTTP/1.1", f"Host: {host}:{target.port}"]
        if proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode())
        await self._done
        head, end, rest = self._answer.partition(b"\r\n\r\n")
        status = head.split(b"\r\n", 1)[0].decode("latin-1")
        if end and not re.match(r"HTTP/1\.[01] 2\d\d\b", status):
            raise _no_proxy(target, f"it answered {status[:100]!r}")
        if self._transport.is_closing():
            raise _no_proxy(target, "it closed the connection")
        # In TLS the client sends first: earlier data is not the server's.
        if not end or rest:
            raise _no_proxy(target, "its response is incomplete")

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if b"\r\n\r\n" in self._answer or len(self._answer) > _MOST_PROXY_ANSWER:
            self._finish()

    def connection_lost(self, error: BaseException | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


def _no_proxy(target: DialTarget, why: str) -> NotSentError:
    return NotSentError(f"the proxy for {target.origin} cannot be used: {why}")


def _not_connected(error: OSError, origin: str) -> NotSentError:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = getattr(error, "verify_message", "") or _described(error)
        return NotSentError(
            f"the certificate of {origin} is not trusted: {reason}; check certificate-authority",
            is_lasting=True,
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return NotSentError(f"TLS handshake with {origin} failed: {_described(error)}", is_lasting=True)
    if isinstance(error, socket.gaierror):
        if error.errno == socket.EAI_AGAIN:
            return NotSentError(f"the host name of {origin} cannot be resolved at the moment")
        return NotSentError(
            f"the host name of {origin} cannot be resolved; check the address", is_lasting=True
        )
    return NotSentError(
        f"{origin} cannot be reached: {_reason(error)}; check the address and that it is running"
    )


def _reason(error: OSError) -> str:
    # The error's text repeats the address, or all addresses of a name; the number has the cause.
    number = error.errno
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])
    return os.strerror(number).lower() if number else _described(error)


def _described(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
