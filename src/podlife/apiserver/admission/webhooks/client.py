"""Calls webhooks over HTTPS.

Connections are pooled by address, trust and server name. Redirects are not followed: a webhook must not choose where
the server connects to. An answer is read up to a limit. Every failure is a `CallError` in upstream's words.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import posixpath
import random
import re
import ssl
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from podlife.api.excerpt import excerpt
from podlife.apiserver.admission.webhooks.configuration import ClientConfig
from podlife.apiserver.admission.webhooks.errors import CallError
from podlife.apiserver.service_endpoints import UnresolvedError, resolve
from podlife.apiserver.storage import Store
from podlife.lru import LruCache

_MOST_ANSWER_BYTES = 8 * 1024 * 1024
_MOST_TEXT_BYTES = 2048
_MOST_CONNECTIONS = 256
_TRUSTS_KEPT = 200
_HEADERS = {
    "Accept": "application/json, */*",
    # A few compressed bytes can be any number of bytes.
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}
_UNTRUSTED = "certificate signed by unknown authority"
# OpenSSL's codes: what Go says instead.
_CERTIFICATE_ERRORS = {
    7: _UNTRUSTED,
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
}
# What a client makes of an error without a Status.
_BY_STATUS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_QUOTED_BY_STATUS = (403, 406, 415)
_names = re.compile(r"not valid for '([^']*)'")


class WebhookClient:
    """Opens connections when they are first needed; `close` ends them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._trusts: LruCache[bytes, ssl.SSLContext] = LruCache(_TRUSTS_KEPT)

    async def call(self, config: ClientConfig, body: bytes, seconds: float) -> bytes:
        """Return the answer to a review; raises CallError. The webhook receives its deadline."""
        shown, url, server_name = self._address(config, math.ceil(seconds))
        headers = _HEADERS if config.service is None else {**_HEADERS, "Host": urlsplit(shown).netloc}
        trust = self._trust(config.ca_bundle)
        try:
            async with (
                asyncio.timeout(seconds),
                self._client().post(
                    URL(url, encoded=True),
                    data=body,
                    headers=headers,
                    ssl=trust,
                    server_hostname=server_name,
                    allow_redirects=False,
                ) as answer,
            ):
                return await _read(answer)
        except TimeoutError:
            raise CallError(f'Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ssl.SSLError, ValueError) as error:
            raise CallError(f'Post "{shown}": {_why(error)}') from None

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            if session.connector is not None:
                # Without waiting for the farewell of every peer.
                await session.connector.close(abort_ssl=True)
            await session.close()

    def _address(self, config: ClientConfig, seconds: int) -> tuple[str, str, str | None]:
        """The URL as errors show it, the one to connect to, and the name the certificate must have."""
        query = f"?timeout={seconds}s"
        service = config.service
        if service is None:
            parts = urlsplit(config.url)
            url = f"{parts.scheme}://{parts.netloc}{_clean(parts.path)}{query}"
            return url, url, None
        name = f"{service.name}.{service.namespace}.svc"
        path = _clean(service.path)
        shown = f"https://{name}:{service.port}{path}{query}"
        try:
            found = resolve(self._store, service.namespace, service.name, service.port)
        except UnresolvedError as error:
            raise CallError(f'Post "{shown}": {error}') from None
        host, port = random.choice(found)  # noqa: S311 - no secret
        host = f"[{host}]" if ":" in host else host
        return shown, f"https://{host}:{port}{path}{query}", name

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_MOST_CONNECTIONS)
            # The caller has a deadline for everything.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _trust(self, ca_bundle: bytes) -> ssl.SSLContext:
        """Trust the bundle, or without one what the system trusts."""
        context = self._trusts.get(ca_bundle)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=ca_bundle.decode("ascii") if ca_bundle else None)
            except (ssl.SSLError, ValueError):
                raise CallError(
                    "unable to load root certificates: unable to parse bytes as PEM block"
                ) from None
            # As Go: any certificate of the bundle is an anchor, and old ones lack extensions.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._trusts.put(ca_bundle, context)
        return context


def _clean(path: str) -> str:
    """As upstream's client joins paths: Go's servers redirect `//path`, which a webhook's client does not follow."""
    return posixpath.normpath("/" + path.lstrip("/"))


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > _MOST_ANSWER_BYTES:
            raise CallError(f"the answer is larger than {_MOST_ANSWER_BYTES} bytes")
    if not 200 <= answer.status <= 206:
        raise CallError(_refusal(answer, bytes(body)))
    if not body:
        kind = answer.headers.get("Content-Type", "application/json")
        raise CallError(f"0-length response with status code: {answer.status} and content type: {kind}")
    return bytes(body)


def _refusal(answer: aiohttp.ClientResponse, body: bytes) -> str:
    is_text = answer.headers.get("Content-Type", "text/").startswith("text/")
    text = body[:_MOST_TEXT_BYTES].decode(errors="replace").strip() if is_text else "unknown"
    status = answer.status
    if status in _QUOTED_BY_STATUS:
        return text
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        quoted = json.dumps(text, ensure_ascii=False)
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _why(error: Any) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_error(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return f"remote error: tls: {excerpt(str(error), 300)}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError(errno=int(number)):
            return f"dial tcp {error.host}:{error.port}: connect: {os.strerror(number).lower()}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
    return excerpt(str(error) or type(error).__name__, 300)


def _certificate_error(error: Exception) -> str:
    code = getattr(error, "verify_code", 0)
    text = str(getattr(error, "verify_message", error))
    if (known := _CERTIFICATE_ERRORS.get(code)) is None:
        known = f"certificate is not valid for {found[1]}" if (found := _names.search(text)) else text
    return f"tls: failed to verify certificate: x509: {known}"
