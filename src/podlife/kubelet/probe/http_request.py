"""The request of an `httpGet` action, as upstream builds it.

Whatever the action contains, exactly one request is sent: the path is quoted, and a header that would break out of its
line is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from podlife.kubelet.pod_fields import Container
from podlife.kubelet.probe.target import (
    NoResponseError,
    container_port,
    host_port,
    target_host,
)

# The version whose behaviour this is; servers tell probes from visitors by it.
_VERSION = "1.36"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_BROKEN_PATH = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9a-fA-F]{2})")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = _IN_PATH + '?[]{}|^`"\\'
# Which the transport writes, not the user.
_NOT_PASSED_ON = {"host", "user-agent", "content-length", "transfer-encoding", "trailer", "connection"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    scheme: str
    host: str
    port: int
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    # Of the Host header, where it is not the address.
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
        """Raises `NoResponseError` for headers that cannot be sent."""
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
    """`purpose` is the middle of the user agent, `probe` or `lifecycle`. Raises `ProbeError`."""
    given = [(each["name"], each.get("value") or "") for each in action.get("httpHeaders") or ()]
    return HttpRequest(
        scheme=(action.get("scheme") or "http").lower(),
        host=target_host(action.get("host"), pod_ip),
        port=container_port(action.get("port", 0), container),
        target=_target(action.get("path") or ""),
        headers=_headers(given, purpose),
        named_host=_first(given, "host") or "",
    )


def redirected(request: HttpRequest, location: str) -> HttpRequest:
    """Raises `NoResponseError` for a location that is none."""
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
        # A host by name goes along while the location does not name another.
        named_host="" if urlsplit(location).netloc else request.named_host,
    )


def _target(path: str) -> str:
    if _BROKEN_PATH.search(path):
        # Sent as it was meant, as far as that can be known: nothing of it is a query or an escape.
        return _rooted(quote(path, safe=_IN_PATH.replace("%", "")))
    try:
        parts = urlsplit(path)
    except ValueError:
        return _rooted(quote(path, safe=_IN_PATH))
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    return _rooted(quote(parts.path, safe=_IN_PATH)) + query


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _headers(given: list[tuple[str, str]], purpose: str) -> tuple[tuple[str, str], ...]:
    agent = _first(given, "user-agent")
    accept = _first(given, "accept")
    made = [("User-Agent", f"kube-{purpose}/{_VERSION}" if agent is None else agent)]
    made += [("Accept", "*/*")] if accept is None else []
    # An empty one of these two says: none at all.
    dropped = _NOT_PASSED_ON | ({"accept"} if accept == "" else set())
    made += [each for each in given if each[0].lower() not in dropped]
    return tuple(each for each in made if each != ("User-Agent", ""))


def _first(given: list[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in given if each.lower() == name), None)
