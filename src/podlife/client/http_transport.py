"""Transport over HTTP/1.1.

Connections are pooled and bounded, with separate pools for streams and requests: a thousand watches do not delay a
delete. Credentials are requested before each request; after a 401, which executes nothing, the request is sent once
more with renewed ones. Over plain HTTP credentials are sent to loopback addresses only. A request that was sent is
never sent again here: `retry` decides what may be repeated.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from podlife.client.connection import Connection, is_this_machine
from podlife.client.credentials import Credential, Credentials, credentials_for
from podlife.client.transport import USER_AGENT, DeadlineError, NotSentError, SilenceError
from podlife.errors import ApiError, UnreachableError
from podlife.wire import WEBSOCKET_MESSAGE_BYTES, Request

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

    from podlife.client.dialer import DialTarget, Tls
    from podlife.client.http_connection import HttpConnection

_REQUEST_CONNECTIONS = 128
_STREAM_CONNECTIONS = 2048
# Receive buffers.
_REQUEST_BUFFER, _STREAM_BUFFER = 1 << 18, 1 << 19
# Idle connections older than this are not reused: the server may be about to close them.
_IDLE_SECONDS = 15.0
# Unreserved characters of a path (RFC 3986); nearly every path has only these.
_PATH_SAFE = "/:@!$&'()*+,;=-._~"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/:@!$&'()*+,;=\-._~]*")


class HttpTransport:
    def __init__(self, connection: Connection, credentials: Credentials | None = None) -> None:
        from podlife.client.dialer import target_of

        self._connection = connection
        self._target = target_of(connection)
        # A proxy may be another machine.
        is_private = self._target.is_tls or (
            self._target.proxy is None and is_this_machine(self._target.host)
        )
        self._credentials = credentials or credentials_for(connection.auth if is_private else None)
        self._pool: _Pool | None = None
        # Pools of earlier identities whose streams continue.
        self._retired: list[_Pool] = []
        self._is_closed = False
        self._common_head = self._make_common_head()

    def _make_common_head(self) -> str:
        """Headers common to all requests."""
        lines = [
            f"Host: {self._target.host_header}",
            f"Accept-Encoding: {'gzip' if self._connection.compression else 'identity'}",
        ]
        proxy = self._target.proxy
        if proxy is not None and proxy.authorization and not self._target.is_tunnelled:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        lines += [f"{name}: {value}" for name, value in self._connection.impersonation]
        return "\r\n".join(lines)

    async def prepare(self) -> None:
        await self._credentials.current()

    async def send(
        self, request: Request, *, seconds: float | None, is_stream: bool = False
    ) -> HttpTransportResponse:
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        try:
            credential = await self._credentials.current()
            answer = await self._send(request, credential, deadline, is_stream=is_stream)
            if answer.status == 401 and await self._has_renewed(credential, answer, deadline):
                credential = await self._credentials.current()
                answer = await self._send(request, credential, deadline, is_stream=is_stream)
            return answer
        except TimeoutError:
            raise DeadlineError(
                f"{self._target.origin} did not answer {request.method} {request.path}"
            ) from None

    @asynccontextmanager
    async def websocket(
        self, path: str, query: str, protocols: Sequence[str], *, seconds: float
    ) -> AsyncIterator[ClientWebSocketResponse[bool]]:
        """A WebSocket on a connection of its own. Raises ApiError if the server refuses it, and UnreachableError."""
        from aiohttp import ClientError, ClientSession, TCPConnector, WSServerHandshakeError
        from yarl import URL

        from podlife.client.dialer import tls_for

        credential = await self._credentials.current()
        tls = tls_for(self._connection, self._target, (credential.certificate, credential.key))
        headers = [("User-Agent", USER_AGENT), *self._connection.impersonation]
        headers += [("Authorization", credential.authorization)] * bool(credential.authorization)
        url = URL(f"{self._target.origin}{quote(path, safe=_PATH_SAFE)}?{query}", encoded=True)
        connector, proxy = TCPConnector(ssl=tls.server or True), self._connection.proxy_url or None
        async with ClientSession(connector=connector, headers=headers, proxy=proxy) as session:
            try:
                async with asyncio.timeout(seconds):
                    socket = await session.ws_connect(
                        url,
                        protocols=protocols,
                        server_hostname=self._target.server_name if tls.server else None,
                        max_msg_size=WEBSOCKET_MESSAGE_BYTES,
                    )
            except WSServerHandshakeError as error:
                why = f"{self._target.origin} refused the stream: {error.status} {error.message}"
                raise ApiError(why, code=error.status) from None
            except (ClientError, OSError, TimeoutError) as error:
                raise UnreachableError(f"{self._target.origin} cannot be reached: {error}") from None
            transport = None if socket._conn is None else socket._conn.transport
            try:
                async with socket:
                    yield socket
            finally:
                # aiohttp begins to end TLS and does not wait; a loop that stops then would leave the connection open.
                if transport is not None:
                    transport.abort()

    async def _has_renewed(
        self, refused: Credential, answer: HttpTransportResponse, deadline: float | None
    ) -> bool:
        is_renewed = True
        try:
            async with asyncio.timeout_at(deadline):
                is_renewed = await self._credentials.renew(refused)
        finally:
            # Closed here, because the response is not returned to the caller.
            if is_renewed:
                await answer.close()
        return is_renewed

    async def _send(
        self, request: Request, credential: Credential, deadline: float | None, *, is_stream: bool
    ) -> HttpTransportResponse:
        message = self._message(request, credential)
        pool = self._pool_for(credential)
        line = pool.streams if is_stream else pool.requests
        connection = await line.take(deadline)
        try:
            await connection.exchange(message, seconds=_left(deadline))
        except BaseException as error:
            line.give_back(connection)
            if isinstance(error, NotSentError):
                raise NotSentError(
                    f"{self._target.origin} closed the connection before the request was sent: {error}"
                ) from None
            if isinstance(error, UnreachableError):
                # A TLS server's reaction to plain HTTP.
                hint = "" if self._target.is_tls else "; if the server expects TLS, write https://"
                raise UnreachableError(
                    f"{self._target.origin} closed the connection before it answered: {error}{hint}"
                ) from None
            raise
        return HttpTransportResponse(connection, line)

    def _message(self, request: Request, credential: Credential) -> bytes:
        path = request.path if _PLAIN_PATH.fullmatch(request.path) else quote(request.path, safe=_PATH_SAFE)
        query = f"?{request.query.raw}" if request.query.raw else ""
        lines = [f"{request.method} {self._target.prefix}{path}{query} HTTP/1.1", self._common_head]
        if "User-Agent" not in request.headers:
            lines.append(f"User-Agent: {USER_AGENT}")
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if credential.authorization:
            lines.append(f"Authorization: {credential.authorization}")
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(request.body)}")
        head = "\r\n".join(lines)
        # A line break within a value would allow header or request injection.
        expected = len(lines) - 1 + self._common_head.count("\n")
        if head.count("\n") != expected or head.count("\r") != expected:
            raise ValueError("a request header contains a line break")
        return f"{head}\r\n\r\n".encode() + request.body

    def _pool_for(self, credential: Credential) -> _Pool:
        if self._is_closed:
            raise _closed()
        identity = (credential.certificate, credential.key)
        if self._pool is None or self._pool.identity != identity:
            # Connections authenticate in the TLS handshake: a new certificate needs new ones.
            old, self._pool = self._pool, _Pool(self._connection, self._target, identity)
            if old is not None:
                old.retire()
                self._retired = [pool for pool in (*self._retired, old) if pool.is_used]
        return self._pool

    async def close(self) -> None:
        """Close all connections, including streams."""
        self._is_closed = True
        for pool in self._retired if self._pool is None else (*self._retired, self._pool):
            pool.close()
        self._pool, self._retired = None, []
        # Aborted connections are closed in the loop's next iteration, which may be the last.
        await asyncio.sleep(0)


class _Pool:
    """The connections of one identity; once it is replaced, they close with their last user."""

    def __init__(self, connection: Connection, target: DialTarget, identity: tuple[bytes, bytes]) -> None:
        from podlife.client.dialer import tls_for

        self.identity = identity
        tls = tls_for(connection, target, identity)
        self.requests = _ConnectionPool(target, tls, _REQUEST_CONNECTIONS, _REQUEST_BUFFER)
        self.streams = _ConnectionPool(target, tls, _STREAM_CONNECTIONS, _STREAM_BUFFER)

    @property
    def is_used(self) -> bool:
        return self.requests.users > 0 or self.streams.users > 0

    def retire(self) -> None:
        self.requests.retire()
        self.streams.retire()

    def close(self) -> None:
        self.requests.close()
        self.streams.close()


class _ConnectionPool:
    """A pool of connections of one kind."""

    def __init__(self, target: DialTarget, tls: Tls, most: int, buffer_bytes: int) -> None:
        self._target = target
        self._tls = tls
        self._buffer_bytes = buffer_bytes
        self._free = asyncio.Semaphore(most)
        self._idle: list[HttpConnection] = []
        self._used: set[HttpConnection] = set()
        self._is_retired = False
        self._is_closed = False
        # Number of callers that have a connection, or wait for one.
        self.users = 0

    async def take(self, deadline: float | None) -> HttpConnection:
        """Raises NotSentError, or TimeoutError at the deadline."""
        self.users += 1
        try:
            if self._free.locked():
                async with asyncio.timeout_at(deadline):
                    await self._free.acquire()
            else:
                await self._free.acquire()
            try:
                connection = self._last_used() or await self._connect(deadline)
            except BaseException:
                self._free.release()
                raise
        except BaseException:
            self.users -= 1
            raise
        self._used.add(connection)
        return connection

    def _last_used(self) -> HttpConnection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < _IDLE_SECONDS and connection.is_quiet:
                return connection
            connection.abort()
        return None

    async def _connect(self, deadline: float | None) -> HttpConnection:
        from podlife.client.dialer import connect

        self._raise_closed()
        async with asyncio.timeout_at(deadline):
            connection = await connect(self._target, self._tls, self._buffer_bytes)
        if self._is_closed:
            connection.abort()
        self._raise_closed()
        return connection

    def _raise_closed(self) -> None:
        if self._is_closed:
            raise _closed()

    def give_back(self, connection: HttpConnection) -> None:
        self._used.discard(connection)
        self._free.release()
        self.users -= 1
        if connection.is_reusable and not self._is_retired:
            now = connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            while now - self._idle[0].idle_since >= _IDLE_SECONDS:
                # The pool is LIFO: the oldest is the least likely to be reused.
                self._idle.pop(0).abort()
        else:
            connection.abort()

    def retire(self) -> None:
        self._is_retired = True
        while self._idle:
            self._idle.pop().abort()

    def close(self) -> None:
        self._is_closed = True
        self.retire()
        for connection in self._used:
            connection.abort()


class HttpTransportResponse:
    def __init__(self, connection: HttpConnection, line: _ConnectionPool) -> None:
        self._connection = connection
        self._line: _ConnectionPool | None = line
        self.status = connection.status
        self.headers: Mapping[str, str] = connection.headers

    async def next_piece(self, *, seconds: float | None) -> bytes:
        if self._line is None:
            return b""
        try:
            return await self._connection.read(seconds=seconds)
        except TimeoutError:
            raise SilenceError(f"the server was silent for {seconds or 0:.3g} s") from None
        except UnreachableError as error:
            raise UnreachableError(f"the response was cut off: {error}") from None

    async def close(self) -> None:
        # A connection is reused only if the body was read completely.
        line, self._line = self._line, None
        if line is not None:
            line.give_back(self._connection)


def _closed() -> NotSentError:
    return NotSentError("the client is closed", is_lasting=True)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - asyncio.get_running_loop().time()
