"""Sends requests to other API servers.

The user is in `X-Remote-*` headers, which the other server believes because of this server's client certificate; those
that a client sends are dropped, as are its credentials. An answer is streamed at the reader's pace; redirects are not
passed on. Connecting has a deadline, and so has everything but a watch.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable
from urllib.parse import quote

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podlife.api.excerpt import excerpt
from podlife.apiserver.aggregation.remote_api import RemoteApi
from podlife.apiserver.authn import MASTERS, UserInfo
from podlife.apiserver.service_endpoints import UnresolvedError, resolve
from podlife.apiserver.storage import Store
from podlife.errors import ApiError
from podlife.lru import LruCache
from podlife.wire import Request, Response

_AGGREGATOR = UserInfo("system:kube-aggregator", groups=(MASTERS,))
_CONNECT_SECONDS = 5.0
_CHECK_SECONDS = 5.0
_REQUEST_SECONDS = 60.0
_MOST_DOCUMENT_BYTES = 4 * 1024 * 1024
_TRUSTS_KEPT = 200
_PASSED_ON = ("Accept", "Content-Type", "If-Match", "If-None-Match", "User-Agent")
_PASSED_BACK = (
    "Cache-Control",
    "Content-Encoding",
    "ETag",
    "Last-Modified",
    "Retry-After",
    "Vary",
    "Warning",
)


class RemoteError(Exception):
    """Another API server gave no answer, or one that is not an answer."""


class RemoteApiProxy:
    """Opens connections when they are first needed; `close` ends them. `certificate` adds the server's own."""

    def __init__(
        self,
        store: Store,
        certificate: Callable[[ssl.SSLContext], None],
        *,
        request_seconds: float = _REQUEST_SECONDS,
    ) -> None:
        self._store = store
        self._certificate = certificate
        self._request_seconds = request_seconds
        self._session: aiohttp.ClientSession | None = None
        self._trusts: LruCache[tuple[bytes, bool], ssl.SSLContext] = LruCache(_TRUSTS_KEPT)

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def get_document(self, api: RemoteApi) -> bytes:
        """The list of the API's resources. Raises UnresolvedError and RemoteError."""
        url = self._url(api, api.path)
        shown = f"failing or missing response from {url}"
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                answer = await self._send(api, "GET", url, _headers({}, _AGGREGATOR), b"")
                async with answer:
                    if not 200 <= answer.status < 300:
                        raise RemoteError(f"{shown}: bad status from {url}: {answer.status}")
                    return await _read(answer, shown)
        except TimeoutError:
            raise RemoteError(f'{shown}: Get "{url}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RemoteError(f'{shown}: Get "{url}": {excerpt(str(error), 300)}') from None

    async def answer(self, api: RemoteApi, request: Request, user: UserInfo) -> Response:
        """The other server's answer. Raises ApiError (503) if there is none."""
        is_watch = "watch" in request.query and request.query.get("watch").lower() not in ("false", "0")
        seconds = None if is_watch else self._request_seconds
        path = quote(request.path, safe="/:@!$&'()*+,;=~") + ("?" if request.query.raw else "")
        headers = _headers({name.lower(): value for name, value in request.headers.items()}, user)
        try:
            url = self._url(api, path + request.query.raw)
            with request.while_connected():
                async with asyncio.timeout(self._request_seconds):
                    answer = await self._send(api, request.method, url, headers, request.body)
        except UnresolvedError:
            raise _unavailable("service unavailable") from None
        except TimeoutError:
            raise _unavailable("the aggregated API server did not respond in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _unavailable(f"error trying to reach service: {excerpt(str(error), 300)}") from None
        if 300 <= answer.status < 400 and answer.status != 304:
            answer.close()
            message = "the backend attempted to redirect this request, which is not permitted"
            raise ApiError(message, code=502, reason="InternalError")
        if answer.status in (204, 304):
            answer.close()
            return Response(answer.status)
        back = [(name, value) for name in _PASSED_BACK for value in answer.headers.getall(name, ())]
        kind = answer.headers.get("Content-Type", "application/json")
        return Response(answer.status, _stream(answer, seconds), kind, back)

    async def _send(
        self, api: RemoteApi, method: str, url: str, headers: CIMultiDict[str], body: bytes
    ) -> aiohttp.ClientResponse:
        return await self._client().request(
            method,
            URL(url, encoded=True),
            data=body or None,
            headers=headers,
            # aiohttp would send one of its own, which the other server may refuse.
            skip_auto_headers=("Content-Type",),
            ssl=self._trust(api),
            server_hostname=api.server_name,
            allow_redirects=False,
        )

    def _url(self, api: RemoteApi, path: str) -> str:
        host, port = random.choice(  # noqa: S311 - no secret
            resolve(self._store, api.namespace, api.service, api.port)
        )
        return f"https://{f'[{host}]' if ':' in host else host}:{port}{path}"

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # No shared limit, with which one client could block all others: each connection has its own client, and
                # the number of clients is limited.
                connector=aiohttp.TCPConnector(limit=0),
                # A watch may be silent for any time; callers have deadlines for the rest.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _trust(self, api: RemoteApi) -> ssl.SSLContext:
        key = (api.ca_bundle, api.is_insecure)
        context = self._trusts.get(key)
        if context is None:
            context = ssl.create_default_context(cadata=api.ca_bundle.decode("ascii") or None)
            # As Go: any certificate of the bundle is an anchor, and old ones lack extensions.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if api.is_insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._certificate(context)
            self._trusts.put(key, context)
        return context


def _headers(given: dict[str, str], user: UserInfo) -> CIMultiDict[str]:
    headers = CIMultiDict({name: given[name.lower()] for name in _PASSED_ON if name.lower() in given})
    # A few compressed bytes can be any number of bytes.
    headers["Accept-Encoding"] = "identity"
    headers["X-Remote-User"] = user.name
    if user.uid:
        headers["X-Remote-Uid"] = user.uid
    for group in user.groups:
        headers.add("X-Remote-Group", group)
    for key, values in user.extra:
        for value in values:
            headers.add(f"X-Remote-Extra-{quote(key, safe='')}", value)
    return headers


async def _read(answer: aiohttp.ClientResponse, shown: str) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > _MOST_DOCUMENT_BYTES:
            raise RemoteError(f"{shown}: larger than {_MOST_DOCUMENT_BYTES} bytes")
    return bytes(body)


async def _stream(answer: aiohttp.ClientResponse, seconds: float | None) -> AsyncIterator[bytes]:
    """Raises what broke it off, so that the reader does not take a part for the whole."""
    deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
    try:
        while True:
            # Not around the yield: the time would run out in the reader's code.
            async with asyncio.timeout_at(deadline):
                chunk = await answer.content.readany()
            if not chunk:
                return
            yield chunk
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionResetError(f"the aggregated API server broke off: {error}") from None
    finally:
        answer.close()


def _unavailable(message: str) -> ApiError:
    return ApiError(message, code=503, reason="ServiceUnavailable")
