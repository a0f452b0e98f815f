"""The transport over HTTP/1.1, with aiohttp.

Connections are pooled and bounded, streams apart from requests: a thousand watches take nothing away from
a delete. Credentials are asked for before each request; after a 401, which executes nothing, the request goes
out once more with renewed ones. Over plain HTTP no credential leaves this machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from podlife import __version__
from podlife.client.config import Connection, is_this_machine
from podlife.client.credentials import Credential, Credentials, credentials_for
from podlife.client.transport import DeadlineError, NotSentError, SilenceError
from podlife.errors import UnreachableError
from podlife.wire import Request

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpTransport"]

_REQUEST_CONNECTIONS = 128
_STREAM_CONNECTIONS = 2048
# How much may come in before it is read. A streaming list is read in large pieces; see `watch`.
_REQUEST_BUFFER, _STREAM_BUFFER = 1 << 16, 1 << 19
# What may stand in a path unquoted (RFC 3986).
_PATH_SAFE = "/:@!$&'()*+,;=-._~"


class HttpTransport:
    def __init__(self, connection: Connection, credentials: Credentials | None = None) -> None:
        self._connection = connection
        url = urlsplit(connection.server)
        self._origin = f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"
        is_private = url.scheme == "https" or is_this_machine(url.hostname or "")
        self._credentials = credentials or credentials_for(connection.auth if is_private else None)
        self._is_tls = url.scheme == "https"
        self._pool: _Pool | None = None
        self._is_closed = False

    async def prepare(self) -> None:
        await self._credentials.current()

    async def send(self, request: Request, *, seconds: float | None, is_stream: bool = False) -> HttpAnswer:
        try:
            async with asyncio.timeout(seconds):
                credential = await self._credentials.current()
                answer = await self._send(request, credential, is_stream=is_stream)
                if answer.status == 401 and await self._has_renewed(credential, answer):
                    credential = await self._credentials.current()
                    answer = await self._send(request, credential, is_stream=is_stream)
                return answer
        except TimeoutError:
            raise DeadlineError(
                f"{self._origin} did not answer {request.method} {request.path} in {seconds or 0:.3g} s"
            ) from None

    async def _has_renewed(self, refused: Credential, answer: HttpAnswer) -> bool:
        is_renewed = True
        try:
            is_renewed = await self._credentials.renew(refused)
        finally:
            # Only an answer that is handed out is for its reader to close.
            if is_renewed:
                await answer.close()
        return is_renewed

    async def _send(self, request: Request, credential: Credential, *, is_stream: bool) -> HttpAnswer:
        import aiohttp
        from yarl import URL

        pool = await self._pool_for(credential)
        url = f"{self._origin}{quote(request.path, safe=_PATH_SAFE)}"
        headers = [*self._connection.impersonation, *request.headers.items()]
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        pool.users += 1
        try:
            response = await (pool.streams if is_stream else pool.requests).request(
                request.method,
                URL(f"{url}?{request.query.raw}" if request.query.raw else url, encoded=True),
                headers=headers,
                data=request.body or None,
                proxy=self._connection.proxy_url or None,
                server_hostname=self._connection.tls_server_name or None,
                allow_redirects=False,
            )
        except BaseException as error:
            await pool.leave()
            if isinstance(error, aiohttp.ClientError | OSError) and not isinstance(error, TimeoutError):
                raise _as_unreachable(error, self._origin) from None
            raise
        return HttpAnswer(response, pool)

    async def _pool_for(self, credential: Credential) -> _Pool:
        if self._is_closed:
            raise NotSentError("the client is closed", is_lasting=True)
        identity = (credential.certificate, credential.key)
        if self._pool is None or self._pool.identity != identity:
            # Connections prove who we are when they begin: a new certificate needs new ones.
            old, self._pool = self._pool, _Pool(self._connection, identity, is_tls=self._is_tls)
            if old is not None:
                await old.retire()
        return self._pool

    async def close(self) -> None:
        """End all connections, those of streams too."""
        self._is_closed = True
        if self._pool is not None:
            await self._pool.close()
            self._pool = None


class _Pool:
    """The connections made under one identity; after it has been replaced they end with their last user."""

    def __init__(self, connection: Connection, identity: tuple[bytes, bytes], *, is_tls: bool) -> None:
        import aiohttp

        from podlife.client.tls import tls_context

        self.identity = identity
        self.users = 0
        self._is_retired = False
        context = tls_context(connection, certificate=identity[0], key=identity[1]) if is_tls else True
        encoding = "gzip" if connection.compression else "identity"

        def session(limit: int, buffer_bytes: int) -> aiohttp.ClientSession:
            opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=limit, ssl=context),
                read_bufsize=buffer_bytes,
                # The callers hold the deadlines: a total here would end every watch.
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"podlife/{__version__}", "Accept-Encoding": encoding},
            )
            # aiohttp would send a DELETE or PUT again by itself when a connection breaks, though it may have
            # been executed. What may be repeated is decided in one place, `retry`; a test watches over this.
            opened._retry_connection = False
            return opened

        self.requests = session(_REQUEST_CONNECTIONS, _REQUEST_BUFFER)
        self.streams = session(_STREAM_CONNECTIONS, _STREAM_BUFFER)

    async def leave(self) -> None:
        self.users -= 1
        if self._is_retired and self.users == 0:
            await self.close()

    async def retire(self) -> None:
        self._is_retired = True
        if self.users == 0:
            await self.close()

    async def close(self) -> None:
        await self.requests.close()
        await self.streams.close()
        # What was broken off a moment ago is closed by the loop in its next turn: it may be the last one.
        await asyncio.sleep(0)


class HttpAnswer:
    def __init__(self, response: aiohttp.ClientResponse, pool: _Pool) -> None:
        self._response = response
        self._pool: _Pool | None = pool
        self.status = response.status
        self.headers: Mapping[str, str] = _joined(response)

    async def next_piece(self, *, seconds: float | None) -> bytes:
        import aiohttp

        content = self._response.content
        try:
            # What is there already is not waited for: of most answers, all of it, and its end too.
            if content.at_eof():
                return b""
            if piece := content.read_nowait():
                return piece
            async with asyncio.timeout(seconds):
                return await content.readany()
        except TimeoutError:
            raise SilenceError(f"the server was silent for {seconds or 0:.3g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(f"the answer was cut off: {_described(error)}") from None

    async def close(self) -> None:
        # A body that was read to its end has given its connection back. Any other ends with it, and at once: a
        # farewell over TLS would wait for the server's, and nobody waits for that any more.
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.release()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.leave()


def _joined(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _described(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _as_unreachable(error: Exception, origin: str) -> UnreachableError:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or _described(error.certificate_error)
        return NotSentError(
            f"the certificate of {origin} is not trusted: {reason}; check certificate-authority",
            is_lasting=True,
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return NotSentError(f"no TLS connection to {origin}: {_described(error)}", is_lasting=True)
    if isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        return NotSentError(f"the proxy on the way to {origin} cannot be used: {_described(error)}")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NotSentError(
            f"the host name of {origin} cannot be resolved; check the address", is_lasting=True
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        # The error's own text repeats the address, the number's says what happened.
        number = error.os_error.errno
        reason = os.strerror(number).lower() if number else _described(error.os_error)
        return NotSentError(f"{origin} cannot be reached: {reason}; check the address and that it runs")
    if isinstance(error, aiohttp.InvalidURL | aiohttp.ServerFingerprintMismatch):
        return NotSentError(f"{origin} cannot be used: {_described(error)}", is_lasting=True)
    return UnreachableError(f"{origin} closed the connection before it answered: {_described(error)}")
