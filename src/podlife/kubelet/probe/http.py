"""HTTP/1.1 requests of probes and hooks, built from an `httpGet` action as upstream does. Redirects to the same host
are followed, and at most ten kilobytes of a body are read.

Whatever the action contains, exactly one request is sent: the path is quoted, and headers with line breaks are
rejected.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httptools

from podlife.kubelet.pod_fields import Container
from podlife.kubelet.probe.connection import Stream, connected
from podlife.kubelet.probe.target import NoResponseError, ProbeError, container_port, host_port, target_host

# Upstream's version; servers recognize probes by it.
_VERSION = "1.36"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_BROKEN_PATH = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9a-fA-F]{2})")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = _IN_PATH + '?[]{}|^`"\\'
# Headers that the transport sets, not the user.
_OWN_HEADERS = {"host", "user-agent", "content-length", "transfer-encoding", "trailer", "connection"}
MAX_BODY_BYTES = 10 * 1024
_MAX_HEAD_BYTES = 256 * 1024
_MAX_REQUESTS = 10
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    scheme: str
    host: str
    port: int
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    # The Host header, if it differs from the address.
    named_host: str = ""

    @property
    def address(self) -> str:
        return host_port(self.host, self.port)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}{self.target}"

    def without(self, name: str) -> HttpRequest:
        return replace(self, headers=tuple(each for each in self.headers if each[0].lower() != name))

    def encode(self) -> bytes:
        """Raises `NoResponseError` for invalid headers."""
        lines = [f"GET {self.target} HTTP/1.1"]
        for name, value in (("Host", self.named_host or self.address), *self.headers):
            if not _NAME.fullmatch(name):
                raise NoResponseError(f"net/http: invalid header field name {name[:100]!r}")
            if _BAD_VALUE.search(value):
                raise NoResponseError(f'net/http: invalid header field value for "{name}"')
            lines.append(f"{name}: {value.strip()}")
        lines.append("Connection: close\r\n\r\n")
        return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def http_request(
    action: Mapping[str, Any], container: Container, pod_ip: str, *, purpose: str
) -> HttpRequest:
    """`purpose` is part of the user agent: `probe` or `lifecycle`. Raises `ProbeError`."""
    custom = [(each["name"], each.get("value") or "") for each in action.get("httpHeaders") or ()]
    return HttpRequest(
        scheme=(action.get("scheme") or "http").lower(),
        host=target_host(action.get("host"), pod_ip),
        port=container_port(action.get("port", 0), container),
        target=_target(action.get("path") or ""),
        headers=_headers(custom, purpose),
        named_host=_first(custom, "host") or "",
    )


def redirected(request: HttpRequest, location: str) -> HttpRequest:
    """Raises `NoResponseError` for an invalid location."""
    try:
        parts = urlsplit(urljoin(request.url, location))
        port = parts.port
    except ValueError:
        raise NoResponseError(f'failed to parse Location header "{location[:200]}"') from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise NoResponseError(f'unsupported protocol scheme "{parts.scheme[:20]}"')
    headers = request.without("referer").headers
    if not (request.scheme == "https" and parts.scheme == "http"):
        headers = (*headers, ("Referer", request.url))
    return HttpRequest(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        target=_target(parts._replace(scheme="", netloc="").geturl()),
        headers=headers,
        # The Host header is kept unless the location names another host.
        named_host="" if urlsplit(location).netloc else request.named_host,
    )


def _target(path: str) -> str:
    if _BROKEN_PATH.search(path):
        # Not a valid path: quoted as a whole, without query and escapes.
        return _rooted(quote(path, safe=_IN_PATH.replace("%", "")))
    try:
        parts = urlsplit(path)
    except ValueError:
        return _rooted(quote(path, safe=_IN_PATH))
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    return _rooted(quote(parts.path, safe=_IN_PATH)) + query


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _headers(custom: list[tuple[str, str]], purpose: str) -> tuple[tuple[str, str], ...]:
    agent = _first(custom, "user-agent")
    accept = _first(custom, "accept")
    headers = [("User-Agent", f"kube-{purpose}/{_VERSION}" if agent is None else agent)]
    headers += [("Accept", "*/*")] if accept is None else []
    # An empty value of these two removes the header.
    dropped = _OWN_HEADERS | ({"accept"} if accept == "" else set())
    headers += [each for each in custom if each[0].lower() not in dropped]
    return tuple(each for each in headers if each != ("User-Agent", ""))


def _first(custom: list[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in custom if each.lower() == name), None)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    code: int
    # At most ten kilobytes.
    body: bytes


async def http_get(request: HttpRequest, *, seconds: float | None, wants_body: bool = True) -> HttpResponse:
    """The last response; a redirect to another host is not followed. Raises `NoResponseError` (`PlainResponseError` if
    HTTPS was answered with HTTP), and `ProbeError` if a body is cut off. Without `seconds` the caller sets the
    timeout."""
    exchange = _Exchange(request, wants_body=wants_body)
    try:
        async with asyncio.timeout(seconds):
            return await exchange.run()
    except TimeoutError:
        if exchange.is_in_body:
            why = "Client.Timeout or context cancellation while reading body"
            raise ProbeError(f"context deadline exceeded ({why})") from None
        why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        raise NoResponseError(f'Get "{exchange.request.url}": {why}') from None
    except NoResponseError as error:
        raise type(error)(f'Get "{exchange.request.url}": {error}') from None


class _Exchange:
    """One request with all its redirects; records its progress, for the message of a timeout."""

    def __init__(self, request: HttpRequest, *, wants_body: bool) -> None:
        self.request = request
        self.is_in_body = False
        self._wants_body = wants_body
        self._host = request.host

    async def run(self) -> HttpResponse:
        for _ in range(_MAX_REQUESTS):
            async with _responding(self.request) as response:
                location = response.location if response.code in _REDIRECTS else ""
                following = redirected(self.request, location) if location else None
                if following is None or following.host.lower() != self._host.lower():
                    self.is_in_body = True
                    return HttpResponse(response.code, await response.body() if self._wants_body else b"")
            self.request = following
        raise NoResponseError("stopped after 10 redirects")


@asynccontextmanager
async def _responding(request: HttpRequest) -> AsyncIterator[_ResponseReader]:
    if request.scheme not in ("http", "https"):
        raise NoResponseError(f'unsupported protocol scheme "{request.scheme[:20]}"')
    encoded = request.encode()
    async with connected(request.host, request.port, is_tls=request.scheme == "https") as stream:
        await stream.send(encoded)
        response = _ResponseReader(stream)
        try:
            await response.head()
            yield response
        finally:
            response.close()


class _ResponseReader:
    """One response, parsed incrementally. The parser calls the methods that begin with `on_`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._parser: Any = httptools.HttpResponseParser(self)
        self._start = b""
        self._body = bytearray()
        self._has_head = False
        self._is_complete = False
        self._has_end_mark = False
        self.location = ""
        self.code = 0

    def close(self) -> None:
        """Free it at once: it and the parser refer to each other, and probes are many."""
        self._parser = None

    async def head(self) -> None:
        received = 0
        while not self._has_head:
            if received > _MAX_HEAD_BYTES:
                raise NoResponseError(
                    f"net/http: server response headers exceeded {_MAX_HEAD_BYTES} bytes; aborted"
                )
            data = await self._stream.receive()
            if not data:
                raise NoResponseError("unexpected EOF" if received else "EOF")
            received += len(data)
            self._start = self._start or data[:60]
            if not self._parse(data):
                line = self._start.split(b"\n")[0].decode("latin-1").strip()
                raise NoResponseError(
                    f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{line}"'
                )

    async def body(self) -> bytes:
        """Raises `ProbeError` if it is cut off."""
        try:
            while not self._is_complete and len(self._body) < MAX_BODY_BYTES:
                data = await self._stream.receive()
                if not data and self._has_end_mark:
                    raise ProbeError("unexpected EOF")
                if not data:
                    break
                if not self._parse(data):
                    raise ProbeError("malformed body of an HTTP response")
        except NoResponseError as error:
            raise ProbeError(str(error)) from None
        return bytes(self._body[:MAX_BODY_BYTES])

    def _parse(self, data: bytes) -> bool:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_complete = True
        except httptools.HttpParserError:
            # Data after a complete response is ignored.
            return self._is_complete
        return True

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"location" and not self._has_head:
            self.location = self.location or value.decode("latin-1")
        self._has_end_mark = self._has_end_mark or lowered in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self.code = self._parser.get_status_code()
        # After an informational response (1xx, but not 101) the actual one follows.
        self._has_head = self.code == 101 or not 100 <= self.code < 200

    def on_body(self, data: bytes) -> None:
        self._body += data[: max(0, MAX_BODY_BYTES - len(self._body))]

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head
        if not self._has_head:
            self.location, self._has_end_mark = "", False
