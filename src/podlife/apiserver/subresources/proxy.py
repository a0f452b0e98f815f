"""`proxy` of pods, services and nodes: HTTP requests, and upgrades, to what runs in the cluster.

Upstream's rules. A pod is contacted at its own address, a service at an address of its Endpoints that belongs to a pod
of the same namespace, a node at its kubelet, which must prove that it is that, or at another port. An address must be a
global unicast one, so that what listens on this machine alone is not reached; only a server that itself listens on
loopback alone proxies to loopback, which all of its clients can reach anyway. TLS of pods is not verified, as upstream.

The client's credentials are not passed on. Redirects to the same host and links in HTML lead through the proxy again.
An answer is streamed at the reader's pace. A request ends when its client disconnects. The requests under way are
limited for each backend and each namespace, so that one tenant cannot block others; waiting for a place has a deadline.
"""

from __future__ import annotations

import asyncio
import posixpath
import random
import re
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from urllib.parse import quote, unquote, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podlife.api.codec import Object, decode_object
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.service_endpoints import pod_addresses
from podlife.apiserver.storage import Key, Store
from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy
from podlife.apiserver.subresources.tunnel import (
    Backend,
    end_to_end_headers,
    is_upgrade,
    passed_on_headers,
    tunnel,
    why_unreachable,
)
from podlife.errors import ApiError, NotFoundError
from podlife.wire import Request, Response

_SECONDS = 30.0
_MOST_OF_BACKEND = 100
_MOST_OF_NAMESPACE = 500
_HTML_BYTES = 1024 * 1024
# What rewriting may add to a page, and how long a link may be: others stay as they are.
_MOST_ADDED = 1024 * 1024
_LINK_BYTES = 8 * 1024
# A link takes some 10 microseconds.
_MANY_LINKS = 300
_SAFE = "/:@!$&'()*+,;=~"
_SKIPPED = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
_CORS = tuple(f"access-control-allow-{name}" for name in ("credentials", "headers", "methods", "origin"))
_NOT_PASSED_BACK = frozenset(("content-length", "content-type", *_CORS))
_tag = re.compile(r"<[a-z][a-z0-9]*(\s[^<>]*)>", re.IGNORECASE)
# Attributes of any tag whose values are links, as HTML 4 and 5 have them.
_link = re.compile(
    r"""(\s(?:href|src|action|formaction|cite|background|codebase|data|icon|longdesc|manifest|poster|profile|usemap)
    \s?=\s?)("[^"]*"|'[^']*')""",
    re.IGNORECASE | re.VERBOSE,
)


class ResourceProxy:
    """`proxies_to_loopback` says whether pods may be contacted on loopback. `close` ends connections."""

    def __init__(self, store: Store, kubelets: KubeletProxy, *, proxies_to_loopback: bool) -> None:
        self._store = store
        self._kubelets = kubelets
        self._proxies_to_loopback = proxies_to_loopback
        self._session: aiohttp.ClientSession | None = None
        # By namespace, and by backend in it. One exists as long as a request holds a place, or waits for one.
        self._places: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()
        # Without the certificates of the machine's authorities, which take time to load.
        self._unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._unverified.check_hostname = False
        self._unverified.verify_mode = ssl.CERT_NONE

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def answer(
        self, request: Request, resource: str, namespace: str, name: str, subpath: str
    ) -> Response:
        """`subpath` is the part of the request's path after `proxy`. Raises ApiError."""
        locate: Callable[[str, str], Backend] = {
            "pods": self._pod,
            "services": self._service,
            "nodes": self._node,
        }[resource]
        backend = locate(namespace, name)
        path = posixpath.normpath("/" + subpath.lstrip("/")) if subpath else ""
        if subpath.endswith("/") and not path.endswith("/"):
            path += "/"
        query = f"?{request.query.raw}" if request.query.raw else ""
        target = quote(path, safe=_SAFE) + query
        if is_upgrade(request):
            return await tunnel(backend, target or "/", request, connect_seconds=_SECONDS)
        if not path and request.method in ("GET", "HEAD"):
            # Relative links of the page would otherwise lead beside it.
            return Response(301, headers=[("Location", quote(request.path, safe=_SAFE) + "/" + query)])
        prefix = request.path.removesuffix(path)
        hosts = ("", backend.url.partition("//")[2], request.headers.get("Host", ""))
        with request.while_connected(), ExitStack() as places:
            await self._take_places(places, backend, namespace)
            answer = await self._forward(request, backend, target, prefix)
            # Left even if the answer is never read.
            leave = weakref.finalize(answer, places.pop_all().close)
            return await _passed_back(
                request, answer, lambda link: _through_proxy(link, hosts, prefix), leave
            )

    def _pod(self, namespace: str, name: str) -> Backend:
        scheme, name, port = _split(name, "pod")
        pod = self._get("pods", namespace, name)
        if not port:
            containers = pod["spec"].get("containers") or ()
            ports = (each["ports"][0] for each in containers if each.get("ports"))
            port = str(next(ports, {"containerPort": ""})["containerPort"])
        host = str((pod.get("status") or {}).get("podIP", ""))
        self._check(host)
        return self._backend(scheme, host, port or ("443" if scheme == "https" else "80"))

    def _service(self, namespace: str, id_: str) -> Backend:
        scheme, name, port = _split(id_, "service")
        nowhere = f'no endpoints available for service "{name}"'
        if port.isdecimal():
            service = self._get("services", namespace, name)
            named = [each for each in service["spec"].get("ports") or () if each["port"] == int(port)]
            if not named:
                raise _unavailable(f'no service port {int(port)} found for service "{name}"')
            port = named[0].get("name", "")
        # Upstream calls Endpoints that are missing by the name of the service's resource.
        subsets = self._get("services", namespace, name, "endpoints").get("subsets") or []
        found = [
            (address["ip"], each["port"])
            for subset in subsets
            for each in subset.get("ports") or ()
            if each.get("name", "") == port
            for address in subset.get("addresses") or ()
            if self._is_of_pod(namespace, address)
        ]
        if not found and self._proxies_to_loopback:
            # No Endpoints can contain an address on loopback.
            found = list(pod_addresses(self._store, namespace, name, port))
        if not found:
            raise _unavailable(f'no endpoints available for service "{id_}"' if subsets else nowhere)
        host, number = random.choice(found)  # noqa: S311 - no secret
        self._check(host)
        return self._backend(scheme, host, str(number))

    def _is_of_pod(self, namespace: str, address: Object) -> bool:
        """Anyone who may write Endpoints could otherwise send the server anywhere."""
        target = address.get("targetRef") or {}
        record = self._store.get(Key("pods", namespace, target.get("name", "")))
        if record is None or target.get("namespace") != namespace:
            return False
        ips = (decode_object(record.value).get("status") or {}).get("podIPs") or ()
        return any(each.get("ip") == address["ip"] for each in ips)

    def _node(self, namespace: str, name: str) -> Backend:
        scheme, name, port = _split(name, "node")
        kubelet = self._kubelets.kubelet(name)
        if port in ("", str(kubelet.port)):
            # Its address need not be checked: it has to prove that it is this node's kubelet.
            return kubelet
        self._check(kubelet.host)
        return self._backend(scheme, kubelet.host, port)

    def _get(self, resource: str, namespace: str, name: str, stored_as: str = "") -> Object:
        record = self._store.get(Key(stored_as or resource, namespace, name))
        if record is None:
            raise NotFoundError(f'{resource} "{name}" not found', details={"name": name, "kind": resource})
        return decode_object(record.value)

    def _check(self, host: str) -> None:
        with suppress(ValueError):
            ip = ip_address(host)
            ip = getattr(ip, "ipv4_mapped", None) or ip
            is_odd = ip.is_unspecified or ip.is_multicast or ip.is_link_local or host == "255.255.255.255"
            if not is_odd and (self._proxies_to_loopback or not ip.is_loopback):
                return
        raise bad_request("address not allowed")

    def _backend(self, scheme: str, host: str, port: str) -> Backend:
        if not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
            raise _unavailable(
                f"error trying to reach service: dial tcp: lookup tcp/{port[:63]}: unknown port"
            )
        return Backend(host, int(port), self._unverified if scheme == "https" else None)

    async def _take_places(self, places: ExitStack, backend: Backend, namespace: str) -> None:
        # The backend's first: while waiting for it, a request must not hold a place of its namespace. Another
        # namespace may have a pod at the same address.
        owner = f'namespace "{namespace}"' if namespace else "nodes"
        limits = ((f"{backend.url} in {owner}", _MOST_OF_BACKEND), (owner, _MOST_OF_NAMESPACE))
        for key, most in limits:
            semaphore = self._places.setdefault(key, asyncio.Semaphore(most))
            try:
                async with asyncio.timeout(_SECONDS):
                    await semaphore.acquire()
            except TimeoutError:
                raise _unavailable(
                    f"too many proxied requests under way: limit for {key} is {most}, try again later"
                ) from None
            places.callback(semaphore.release)

    async def _forward(
        self, request: Request, backend: Backend, target: str, prefix: str
    ) -> aiohttp.ClientResponse:
        headers = CIMultiDict(passed_on_headers(request))
        # Links of a compressed page could not be rewritten.
        headers["Accept-Encoding"] = "identity"
        headers["X-Forwarded-Uri"] = quote(prefix, safe=_SAFE) + target.partition("?")[0]
        try:
            return await self._client().request(
                request.method,
                URL(backend.url + target, encoded=True),
                data=request.body or None,
                headers=headers,
                skip_auto_headers=_SKIPPED,
                ssl=backend.tls or True,
                server_hostname=backend.server_name or None,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(why_unreachable(backend, error.os_error)) from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _unreachable(why_unreachable(backend, error)) from None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                # An answer may be silent for any time.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


async def _passed_back(
    request: Request,
    answer: aiohttp.ClientResponse,
    rewrite: Callable[[str], str],
    leave: Callable[[], object],
) -> Response:
    kind = answer.headers.get("Content-Type", "")
    pairs = [
        (key, rewrite(value) if key.lower() == "location" else value)
        for key, value in end_to_end_headers(answer.headers.items())
        if key.lower() not in _NOT_PASSED_BACK
    ]
    if request.method == "HEAD" or answer.status in (204, 304):
        answer.close()
        leave()
        return Response(answer.status, content_type=kind, headers=pairs)
    is_page = kind.partition(";")[0].strip() == "text/html" and "Location" not in answer.headers
    if not is_page or "Content-Encoding" in answer.headers:
        return Response(answer.status, _stream(answer, leave), kind, pairs)
    body = bytearray()
    stream = _stream(answer, leave)
    async for part in stream:
        body += part
        if len(body) > _HTML_BYTES:
            # Too large to be held: its links stay as they are.
            return Response(answer.status, _after(bytes(body), stream), kind, pairs)
    page = bytes(body)
    is_costly = page.count(b"=") > _MANY_LINKS
    rewritten = await offload(lambda: _rewrite_links(page, rewrite), page, is_costly=is_costly)
    return Response(answer.status, rewritten, kind, pairs)


async def _stream(answer: aiohttp.ClientResponse, leave: Callable[[], object]) -> AsyncIterator[bytes]:
    """Raises what broke it off, so that the reader does not take a part for the whole."""
    try:
        while chunk := await answer.content.readany():
            yield chunk
    except aiohttp.ClientError as error:
        raise ConnectionResetError(f"the answer broke off: {error}") from None
    finally:
        answer.close()
        leave()


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part
        await asyncio.sleep(0)


def _rewrite_links(page: bytes, rewrite: Callable[[str], str]) -> bytes:
    room = _MOST_ADDED

    def of_link(link: re.Match[str]) -> str:
        nonlocal room
        if room <= 0:
            return link[0]
        quotes, old = link[2][0], link[2][1:-1]
        new = rewrite(old)
        room -= len(new) - len(old)
        return f"{link[1]}{quotes}{new}{quotes}"

    text = page.decode("utf-8", "surrogateescape")
    return _tag.sub(lambda tag: _link.sub(of_link, tag[0]), text).encode("utf-8", "surrogateescape")


def _through_proxy(link: str, hosts: tuple[str, ...], prefix: str) -> str:
    """An absolute path, or a URL of the same host, below the proxy's own path; everything else is left alone."""
    if len(link) > _LINK_BYTES:
        return link
    try:
        parts = urlsplit(link)
    except ValueError:
        return link
    if parts.netloc not in hosts or not parts.path.startswith("/"):
        return link
    path = unquote(parts.path)
    path = path if path.startswith(prefix) else prefix.rstrip("/") + path
    return parts._replace(scheme="", netloc="", path=quote(path, safe=_SAFE)).geturl()


def _split(id_: str, kind: str) -> tuple[str, str, str]:
    """NAME, NAME:PORT or SCHEME:NAME:PORT."""
    parts = id_.split(":")
    if len(parts) < 3:
        parts = ["", *parts, ""][:3]
    scheme, name, port = parts[:3]
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise bad_request(f'invalid {kind} request "{id_}"')
    return scheme, name, port


def _unreachable(why: str) -> ApiError:
    return _unavailable(f"error trying to reach service: {why}")


def _unavailable(message: str) -> ApiError:
    return ApiError(message, code=503, reason="ServiceUnavailable")
