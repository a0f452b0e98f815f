"""The HTTP server of the page.

`/?token=TOKEN` leads to the page, which is under a path of its own (`Access.prefix`). There, `/` and `/static/NAME` are
files of this package; everything under `/api/` needs the cookie. Heads, connections, streams and bodies are bounded,
and a reader that does not keep up is cut off: it comes back and goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from typing import Any

import msgspec
from aiohttp import web

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import encode
from podlife.bounded_connection import BoundedConnection, OpenServer, accept_tls
from podlife.client import NODES, PODS
from podlife.errors import ConfigError, PodlifeError
from podlife.ui.access import HEADERS, Access
from podlife.ui.cluster_api import ClusterApi, log_options, status_of
from podlife.ui.feed import Feed
from podlife.ui.journal import Frame, Journal

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
MOST_STREAMS, _MOST_LOGS = 32, 16
MOST_CONNECTIONS, MOST_HANDSHAKES = 256, 64
_WRITE_SECONDS, _HANDSHAKE_SECONDS = 20.0, 10.0
_MOST_BATCH = 256
_MOST_BODY = 4096
_FILE = re.compile(r"[a-z0-9][a-z0-9_-]*\.(?:js|css|svg|png|ico|json)")
_TYPES = {
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
}
_LABEL, _NAME = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_POD = re.compile(rf"/api/pods/(?P<namespace>{_LABEL})/(?P<name>{_NAME})/(?P<what>[a-z]+)")
_NODE = re.compile(rf"/api/nodes/(?P<name>{_NAME})/(?P<what>[a-z]+)")
_OPEN_IT = "open the address that podlife printed: it has a token"


class _HttpError(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Sweep(msgspec.Struct):
    digest: str
    confirm: str


class PageServer:
    """`cluster` is None for a replay, `allows_actions` lets the page sweep."""

    def __init__(
        self,
        feed: Feed,
        access: Callable[[], Access],
        cluster: ClusterApi | None,
        *,
        allows_actions: bool = False,
        static: Path = STATIC,
    ) -> None:
        self._feed = feed
        self._access = access
        self._cluster = cluster
        self._allows_actions = allows_actions
        self._static = static
        self._streams = self._logs = 0
        self._server: OpenServer | None = None

    @asynccontextmanager
    async def serving(self, host: str, ports: tuple[int, ...], tls: SSLContext | None) -> AsyncIterator[int]:
        """Listen on the first of the ports that is free, for the duration of the block. Raises ConfigError."""
        server = self._server = OpenServer(self._serve)
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            listener = stack.enter_context(_listening(host, ports))
            runner = web.ServerRunner(server, shutdown_timeout=0.2)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            if tls is None:
                stack.callback((await loop.create_server(server, sock=listener)).close)
            else:
                accepting = accept_tls(
                    listener, server, tls, most_handshakes=MOST_HANDSHAKES, seconds=_HANDSHAKE_SECONDS
                )
                task = spawn(accepting, name="TLS", on_failure=lambda error: log.error("ended: %s", error))
                stack.push_async_callback(cancel_and_wait, task)
            yield listener.getsockname()[1]

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._checked(request)
        except _HttpError as error:
            response = _error(error.status, str(error))
        except PodlifeError as error:
            response = _error(status_of(error), str(error))
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            _cut_off(request)
        return response

    async def _checked(self, request: web.BaseRequest) -> web.StreamResponse:
        access, is_post = self._access(), request.method == "POST"
        is_inside = request.path.startswith(f"{access.prefix}/")
        path = request.path.removeprefix(access.prefix) if is_inside else request.path
        if (refusal := access.refusal_of(request.method or "", path, request.headers)) is not None:
            raise _HttpError(refusal.status, refusal.why)
        if not is_inside:
            if path != "/" or is_post:
                raise _HttpError(404, "not found")
            return _enter(access, request.query.get("token"))
        if path.startswith("/static/") and not is_post:
            return self._file(path.removeprefix("/static/"))
        is_page = path == "/" and not is_post
        if not access.is_known(request.headers):
            if is_page:
                return _enter(access, None)
            raise _HttpError(401, _OPEN_IT)
        self._admit(request)
        return self._read("index.html", "text/html") if is_page else await self._answer(request, path)

    def _admit(self, request: web.BaseRequest) -> None:
        """Of too many connections an idle one is closed: browsers keep them, and open another when they need it."""
        server, connection = self._server, request.protocol
        assert server is not None
        assert isinstance(connection, BoundedConnection)
        if len(server.connections) > MOST_CONNECTIONS:
            every = (each for each in server.connections if isinstance(each, BoundedConnection))
            idle = next((each for each in every if each.is_idle), None)
            if idle is None:
                raise _HttpError(503, f"{MOST_CONNECTIONS} connections are open already: close a page")
            idle.drop()
        server.unauthenticated.forget(connection)

    def _file(self, name: str) -> web.Response:
        if _FILE.fullmatch(name) is None:
            raise _HttpError(404, "not found")
        return self._read(name, _TYPES[name.rpartition(".")[2]])

    def _read(self, name: str, content_type: str) -> web.Response:
        try:
            data = (self._static / name).read_bytes()
        except OSError:
            raise _HttpError(404, "not found") from None
        charset = "utf-8" if content_type.startswith("text/") else None
        return web.Response(body=data, content_type=content_type, charset=charset, headers=HEADERS)

    async def _answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        is_post = request.method == "POST"
        if is_post != (path == "/api/sweep") or request.method == "HEAD":
            raise _HttpError(405 if path.startswith("/api/") else 404, "method not allowed")
        if path == "/api/stream":
            return await self._stream(request)
        cluster = self._cluster
        if cluster is None:
            raise _HttpError(409, "a replay has no cluster to ask: only what was recorded is shown")
        if path == "/api/sweep":
            return await self._sweep(request, cluster)
        if path == "/api/plan":
            return _json(await cluster.plan())
        if found := _POD.fullmatch(path):
            return await self._pod(request, cluster, found["namespace"], found["name"], found["what"])
        if found := _NODE.fullmatch(path):
            if found["what"] == "explain":
                return _json(await cluster.explain_node(found["name"]))
            if found["what"] == "yaml":
                return _text(await cluster.yaml(NODES, found["name"]))
        raise _HttpError(404, "not found")

    async def _pod(
        self, request: web.BaseRequest, cluster: ClusterApi, namespace: str, name: str, what: str
    ) -> web.StreamResponse:
        uid = request.query.get("uid", "")
        match what:
            case "explain":
                return _json(await cluster.explain_pod(namespace, name, uid))
            case "yaml":
                return _text(await cluster.yaml(PODS, name, namespace, uid))
            case "archive":
                return _json(await cluster.archived(namespace, name, uid))
            case "log":
                return await self._log(request, cluster, namespace, name)
        raise _HttpError(404, "not found")

    async def _sweep(self, request: web.BaseRequest, cluster: ClusterApi) -> web.Response:
        if not self._allows_actions:
            raise _HttpError(403, "this page only shows: start it with --allow-actions to sweep from it")
        if (request.content_length or _MOST_BODY + 1) > _MOST_BODY:
            raise _HttpError(413, "the body is too large, or has no length")
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                body = await request.read()
        except TimeoutError:
            raise _HttpError(408, "the body did not arrive in time") from None
        try:
            asked = msgspec.json.decode(body, type=_Sweep)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _HttpError(400, 'expected {"digest": …, "confirm": "yes"}') from None
        if asked.confirm != "yes":
            raise _HttpError(400, 'not confirmed: expected "confirm": "yes"')
        return _json(await cluster.sweep(asked.digest))

    async def _log(
        self, request: web.BaseRequest, cluster: ClusterApi, namespace: str, name: str
    ) -> web.StreamResponse:
        try:
            options = log_options(request.query)
        except ValueError as error:
            raise _HttpError(400, f"invalid query: {error}") from None
        if self._logs >= _MOST_LOGS:
            raise _HttpError(503, "too many logs are open: close one")
        self._logs += 1
        response = web.StreamResponse(headers=HEADERS)
        try:
            async with aclosing(
                cluster.log(namespace, name, options, request.query.get("uid", ""))
            ) as pieces:
                # The first before the head: a refusal becomes a status of its own.
                first = await anext(pieces, b"")
                response.content_type, response.charset = "text/plain", "utf-8"
                await response.prepare(request)
                await _write(response, first)
                async for piece in pieces:
                    await _write(response, piece)
        except TimeoutError:
            _cut_off(request)
        finally:
            self._logs -= 1
        return response

    # The stream

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._streams >= MOST_STREAMS:
            raise _HttpError(503, f"{MOST_STREAMS} pages are open already: close one")
        self._streams += 1
        try:
            response = web.StreamResponse(headers={**HEADERS, "X-Accel-Buffering": "no"})
            response.content_type = "text/event-stream"
            await response.prepare(request)
            try:
                await self._feed_to(response, request.headers.get("Last-Event-ID", ""))
            except TimeoutError:
                _cut_off(request)
        finally:
            self._streams -= 1
        return response

    async def _feed_to(self, response: web.StreamResponse, last_id: str) -> None:
        journal = self._feed.journal
        number = journal.number_of(last_id)
        if number is None:
            number = await self._send_everything(response)
        else:
            await _write(response, _frame("resumed", encode({"now": self._feed.now()})))
        while (frames := journal.since(number)) is not None:
            if not frames:
                await journal.wait()
                continue
            batch = frames[:_MOST_BATCH]
            await _write(response, b"".join(_numbered(journal, frame) for frame in batch))
            number = batch[-1].number
        raise TimeoutError

    async def _send_everything(self, response: web.StreamResponse) -> int:
        """The number of the frame to go on with. Only the end has an ID: who is cut off before starts again."""
        feed, number = self._feed, self._feed.journal.last
        await _write(response, _frame("hello", encode(feed.hello()), b""))
        while not feed.is_complete:
            await feed.journal.wait()
            # Before the picture is complete only statuses are published: they say that this server is there.
            told = feed.journal.since(number) or ()
            await _write(response, b"".join(_frame(each.event, each.data) for each in told))
            number = feed.journal.last
        number = feed.journal.last
        for chunk in feed.chunks():
            await _write(response, _frame("lives", chunk))
        id_ = feed.journal.id_of(number).encode()
        await _write(response, _frame("synced", encode({"now": feed.now()}), id_))
        return number


def _listening(host: str, ports: tuple[int, ...]) -> socket.socket:
    """On the first of the ports that is free. Raises ConfigError."""
    is_any = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in host or is_any else socket.AF_INET
    for port in ports:
        try:
            listener = socket.create_server((host, port), family=family, dualstack_ipv6=is_any)
        except OSError as error:
            why = ConfigError(f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}")
        else:
            listener.setblocking(False)
            return listener
    raise why


def _enter(access: Access, token: str | None) -> web.Response:
    if token is None or not access.is_token(token):
        wrong = "" if token is None else "wrong token: "
        return web.Response(status=403, text=f"{wrong}{_OPEN_IT}\n", headers=HEADERS)
    headers = {**HEADERS, "Location": f"{access.prefix}/", "Set-Cookie": access.cookie}
    return web.Response(status=303, headers=headers)


def _frame(event: str, data: bytes, id_: bytes | None = None) -> bytes:
    head = b"" if id_ is None else b"id: %s\n" % id_
    return b"%sevent: %s\ndata: %s\n\n" % (head, event.encode(), data)


def _numbered(journal: Journal, frame: Frame) -> bytes:
    return _frame(frame.event, frame.data, journal.id_of(frame.number).encode())


async def _write(response: web.StreamResponse, data: bytes) -> None:
    """Raises TimeoutError when the reader does not keep up, and ConnectionError when it is gone."""
    if data:
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.write(data)


def _cut_off(request: web.BaseRequest) -> None:
    """With what was not sent: the socket of a reader that does not keep up would hold it."""
    log.debug("the reader of %s does not keep up, cutting it off", request.path)
    assert isinstance(request.protocol, BoundedConnection)
    request.protocol.drop()


def _json(data: Any) -> web.Response:
    return web.Response(body=encode(data), content_type="application/json", headers=HEADERS)


def _text(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/plain", charset="utf-8", headers=HEADERS)


def _error(status: int, why: str) -> web.Response:
    response = _json({"error": " ".join(why.split())})
    response.set_status(status)
    return response
