"""The HTTP server over real sockets and TLS: translation both ways, and every limit a client can reach."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from podlife.aio import cancel_and_wait
from podlife.apiserver.http import HttpLimits, HttpServer
from podlife.clock import SystemClock
from podlife.errors import UnauthorizedError
from podlife.pki import CertificateAuthority, Subject, names_for
from podlife.wire import Body, Channel, Handler, Request, Response, Upgrade
from tests.kit.moved_time import heard, pass_time
from tests.kit.wait import until

LIMITS = HttpLimits(lingering_seconds=0.5)
DEADLINE = 60.0


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    pki = CertificateAuthority(tmp_path_factory.mktemp("pki"), SystemClock())
    pki.ensure("server.pem", Subject("kube-apiserver", names=names_for("127.0.0.1")))
    pki.ensure("client.pem", Subject("system:node:n1", ("system:nodes", "more")))
    return pki


def server_tls(pki: CertificateAuthority) -> ssl.SSLContext:
    return pki.server_context(pki.authority_file.parent / "server.pem")


def client_tls(pki: CertificateAuthority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(pki.authority_file))


class Client:
    """A running HTTP server, an ordinary client, and a raw connection to it."""

    def __init__(self, face: HttpServer, pki: CertificateAuthority, session: aiohttp.ClientSession) -> None:
        self.face = face
        self.pki = pki
        self.session = session
        self.url = f"https://localhost:{face.port}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.face.port, ssl=client_tls(self.pki), server_hostname="localhost"
        )

    async def ask(self, sent: bytes) -> bytes:
        """Everything that the server answers on one connection, until it closes that."""
        reader, writer = await self.connect()
        writer.write(sent)
        async with within():
            answer = await reader.read()
        writer.close()
        return answer

    async def until_connections(self, most: int, *, seconds: float = 10.0) -> None:
        await until(lambda: self.face.connections <= most, seconds=seconds)


Serve = Callable[..., Awaitable[Client]]


@pytest.fixture
async def serve(pki: CertificateAuthority) -> AsyncIterator[Serve]:
    running: list[Client] = []

    async def start(
        handler: Handler, limits: HttpLimits = LIMITS, identify: Callable[[Request], object] | None = None
    ) -> Client:
        face = HttpServer(handler, tls=server_tls(pki), limits=limits, identify=identify)
        await face.start("127.0.0.1", 0)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=client_tls(pki)), timeout=aiohttp.ClientTimeout(DEADLINE)
        )
        running.append(Client(face, pki, session))
        return running[-1]

    yield start
    for client in running:
        await client.session.close()
        await client.face.stop(seconds=1)


async def echo(request: Request) -> Response:
    told = {
        "method": request.method,
        "path": request.path,
        "query": request.query.raw,
        "accept": request.headers.get("accept", ""),
        "body": request.body.decode(),
        "peer": [request.peer.common_name, *request.peer.organizations] if request.peer else None,
    }
    return Response(body=json.dumps(told).encode())


def within(seconds: float = DEADLINE) -> asyncio.Timeout:
    return asyncio.timeout(seconds)


def answering(make: Callable[[Request], Response]) -> Handler:
    async def handler(request: Request) -> Response:
        return make(request)

    return handler


# --- translation -----------------------------------------------------------------------------------------


async def test_a_request_arrives_with_its_path_decoded_and_its_query_as_it_was_sent(serve: Serve) -> None:
    client = await serve(echo)
    answer = await client.ask(
        b"POST /api/v1/pods/a%20b?labelSelector=x%3Dy&x HTTP/1.1\r\nHost: h\r\nACCEPT: text/x\r\n"
        b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
        "method": "POST",
        "path": "/api/v1/pods/a b",
        "query": "labelSelector=x%3Dy&x",
        "accept": "text/x",
        "body": "{}",
        "peer": None,
    }


async def test_a_request_line_with_a_whole_address_means_its_path(serve: Serve) -> None:
    client = await serve(echo)
    answer = await client.ask(b"GET http://other/api/v1?a=b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (told["path"], told["query"]) == ("/api/v1", "a=b")


async def test_a_client_certificate_is_passed_on_as_the_peer(serve: Serve, pki: CertificateAuthority) -> None:
    client = await serve(echo)
    tls = client_tls(pki)
    tls.load_cert_chain(pki.authority_file.parent / "client.pem")
    async with client.session.get(client.url, ssl=tls) as answer:
        assert (await answer.json())["peer"] == ["system:node:n1", "system:nodes", "more"]


@pytest.mark.parametrize("is_ours", [False, True], ids=["of another authority", "for serving"])
async def test_a_certificate_that_is_no_identity_is_refused(
    serve: Serve, tmp_path: Path, is_ours: bool
) -> None:
    client = await serve(echo)
    other = CertificateAuthority(tmp_path, SystemClock())
    foreign = other.ensure("client.pem", Subject("admin", ("system:masters",)))
    tls = client_tls(client.pki)
    tls.load_cert_chain(client.pki.authority_file.parent / "server.pem" if is_ours else foreign)
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        async with client.session.get(client.url, ssl=tls) as answer:
            await answer.read()


async def test_only_http_1_1_is_offered(serve: Serve, pki: CertificateAuthority) -> None:
    client = await serve(echo)
    tls = client_tls(pki)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("localhost", client.face.port, ssl=tls)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    writer.close()


async def test_an_answer_has_its_code_type_headers_and_length(serve: Serve) -> None:
    made = Response(201, b"made", "text/plain", {"Warning": '299 - "old"'})
    client = await serve(answering(lambda _: made))
    async with client.session.post(client.url) as answer:
        assert answer.status == 201
        assert answer.headers["Content-Type"] == "text/plain"
        assert answer.headers["Content-Length"] == "4"
        assert answer.headers["Warning"] == '299 - "old"'
        assert answer.headers["Cache-Control"] == "no-cache, private"
        assert await answer.read() == b"made"


@pytest.mark.parametrize("body", [b"12345", [b"123", b"45"]])
async def test_head_is_answered_with_the_length_but_no_body(serve: Serve, body: bytes | list[bytes]) -> None:
    client = await serve(answering(lambda _: Response(body=body)))
    answer = await client.ask(b"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: 5" in head
    assert rest == b""


async def test_a_connection_serves_one_request_after_the_other(serve: Serve) -> None:
    client = await serve(echo)
    reader, writer = await client.connect()
    for number in range(3):
        writer.write(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        assert json.loads(await reader.readexactly(length))["path"] == f"/{number}"
    writer.close()


async def test_a_failure_of_the_handler_is_a_500_status_and_the_next_request_is_served(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/bad":
            raise RuntimeError("out of cheese")
        return Response(body=b"{}")

    client = await serve(handler)
    async with client.session.get(f"{client.url}/bad") as answer:
        status = await answer.json()
        assert (answer.status, status["kind"], status["code"]) == (500, "Status", 500)
        assert status["message"] == "Internal error occurred: out of cheese"
    assert "GET /bad failed" in caplog.text
    async with client.session.get(f"{client.url}/good") as answer:
        assert answer.status == 200


async def test_a_failure_in_the_midst_of_a_stream_cuts_it_off_and_is_logged(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async def items() -> AsyncIterator[bytes]:
        yield b"first\n"
        raise RuntimeError("out of cheese")

    client = await serve(answering(lambda _: Response(body=items())))
    async with client.session.get(f"{client.url}/stream") as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    assert "GET /stream failed" in caplog.text
    assert "out of cheese" in caplog.text


# --- bodies that arrive ----------------------------------------------------------------------------------


async def test_a_body_of_the_full_size_is_taken(serve: Serve) -> None:
    client = await serve(answering(lambda request: Response(body=str(len(request.body)).encode())))
    async with client.session.post(client.url, data=io.BytesIO(b"x" * LIMITS.body_bytes)) as answer:
        assert await answer.text() == "3145728"


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_a_413_status(serve: Serve, chunked: bool) -> None:
    client = await serve(echo)

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * 1024 * 1024

    body = parts() if chunked else io.BytesIO(b"x" * (LIMITS.body_bytes + 1))
    async with client.session.post(client.url, data=body) as answer:
        status = await answer.json()
    assert answer.status == 413
    assert status["message"] == "Request entity too large: limit is 3145728"
    assert status["reason"] == "RequestEntityTooLarge"


def known(request: Request) -> None:
    if request.headers.get("Authorization") != "Bearer known":
        raise UnauthorizedError("Unauthorized")


async def test_the_body_of_somebody_unknown_is_not_waited_for(serve: Serve) -> None:
    client = await serve(echo, identify=known)
    reader, writer = await client.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\nbegin")
    async with within():
        answer = await reader.readuntil(b"}")
    assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert b"Connection: close" in answer
    writer.close()


async def test_a_client_that_asks_first_is_told_to_send_its_body(serve: Serve) -> None:
    client = await serve(echo)
    reader, writer = await client.connect()
    writer.write(
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"{}")
    assert b"200 OK" in await reader.read()
    writer.close()


async def test_a_body_that_does_not_come_is_given_up(serve: Serve) -> None:
    client = await serve(echo, HttpLimits(body_seconds=0.05, lingering_seconds=0.05))
    answer = await client.ask(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12")
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: "])
async def test_a_client_that_does_not_finish_its_headers_is_cut_off(serve: Serve, sent: bytes) -> None:
    client = await serve(echo, HttpLimits(idle_seconds=60))
    reader, writer = await client.connect()
    writer.write(sent)
    await heard(writer)
    pass_time(61)
    async with within():
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
    ids=["no request line", "version", "header", "length", "smuggling", "huge header", "huge line"],
)
async def test_what_is_not_http_is_a_400_and_the_end_of_the_connection(serve: Serve, sent: bytes) -> None:
    client = await serve(echo)
    assert (await client.ask(sent)).split(b"\r\n")[0] == b"HTTP/1.0 400 Bad Request"


async def test_connections_over_the_limit_are_refused_and_the_others_go_on(serve: Serve) -> None:
    client = await serve(echo, HttpLimits(connections=2))
    kept = [await client.connect() for _ in range(2)]
    assert await client.ask(b"") == b""
    for number, (kept_reader, kept_writer) in enumerate(kept):
        kept_writer.write(b"GET /%d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % number)
        assert b"200 OK" in await kept_reader.read()
        kept_writer.close()


async def test_of_clients_that_nobody_knows_the_oldest_makes_room_for_another(serve: Serve) -> None:
    client = await serve(echo, HttpLimits(unauthenticated_connections=1))
    known_reader, known_writer = await client.connect()
    ask = b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\n"
    known_writer.write(ask + b"\r\n")
    async with within():
        assert (await known_reader.readline()).startswith(b"HTTP/1.1 200 ")
        stranger_reader, stranger_writer = await client.connect()
        other_reader, other_writer = await client.connect()
        assert await stranger_reader.read() == b""
        for reader, writer in ((known_reader, known_writer), (other_reader, other_writer)):
            writer.write(ask + b"Connection: close\r\n\r\n")
            assert b"HTTP/1.1 200 OK" in await reader.read()
    for writer in (known_writer, stranger_writer, other_writer):
        writer.close()


async def _silent(client: Client) -> ssl.SSLSocket:
    """A client that does not read, so that it never agrees to the end of its connection."""

    def connect() -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", client.face.port), timeout=DEADLINE)
        return client_tls(client.pki).wrap_socket(plain, server_hostname="localhost")

    return await asyncio.to_thread(connect)


async def test_a_client_that_made_room_keeps_nothing_though_it_does_not_agree_to_that(serve: Serve) -> None:
    client = await serve(echo, HttpLimits(unauthenticated_connections=1))
    first, second = await _silent(client), await _silent(client)
    await client.until_connections(1)
    first.close()
    second.close()


async def test_a_client_that_was_refused_does_not_hold_its_connection_open(serve: Serve) -> None:
    client = await serve(echo)
    refused = await _silent(client)
    head = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: " + b"x" * 62_000 + b"\r\nY: " + b"x" * 10_000
    await asyncio.to_thread(refused.sendall, head)
    await client.until_connections(0)
    refused.close()


async def test_a_head_larger_than_all_of_its_headers_may_be_is_a_431(serve: Serve) -> None:
    client = await serve(echo)
    reader, writer = await client.connect()
    writer.write(
        b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"X-%d: %b\r\n" % (n, b"x" * 62_000) for n in range(9))
    )
    async with within():
        assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")
    writer.close()


# --- bodies that are sent --------------------------------------------------------------------------------


async def test_a_list_nobody_reads_neither_blocks_others_nor_piles_up(serve: Serve) -> None:
    body = [b"x" * 100_000] * 1000
    handler = answering(lambda request: Response(body=body if request.path == "/list" else b"{}"))
    client = await serve(handler, HttpLimits(stall_seconds=0.2))
    reader, writer = await client.connect()
    writer.write(b"GET /list HTTP/1.1\r\nHost: h\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    async with within(), client.session.get(f"{client.url}/other") as answer:
        assert answer.status == 200
    # The reader stands still, so the server cuts it off long before the 100 MB are written.
    await client.until_connections(1, seconds=DEADLINE)
    writer.close()


async def test_a_stream_shows_its_headers_at_once_and_each_item_when_it_comes(serve: Serve) -> None:
    items: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def stream() -> AsyncIterator[bytes]:
        while (item := await items.get()) is not None:
            yield item

    client = await serve(answering(lambda _: Response(body=stream())))
    async with within(), client.session.get(client.url) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"
        for item in (b"one\n", b"two\n"):
            items.put_nowait(item)
            assert await answer.content.readany() == item
        items.put_nowait(None)
        assert await answer.content.read() == b""


class Endless:
    """A stream that gives its items and then waits; says when it was closed."""

    def __init__(self, *items: bytes) -> None:
        self._items = items
        self.closed = asyncio.Event()

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            for item in self._items:
                yield item
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def test_a_stream_is_closed_as_soon_as_its_reader_has_gone(serve: Serve) -> None:
    endless = Endless(b"first\n")
    client = await serve(answering(lambda _: Response(body=endless.stream())))
    reader, writer = await client.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await reader.readuntil(b"first\n")
    writer.transport.abort()
    async with within():
        await endless.closed.wait()


async def test_a_stream_whose_reader_stands_still_is_cut_off(serve: Serve) -> None:
    endless = Endless(*[b"x" * 1_000_000] * 100)
    handler = answering(lambda _: Response(body=endless.stream()))
    client = await serve(handler, HttpLimits(stall_seconds=0.1))
    _, writer = await client.connect()
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    async with within():
        await endless.closed.wait()
    writer.transport.abort()


@pytest.mark.parametrize("path", ["/stream", "/list", "/whole"])
async def test_a_slow_reader_that_goes_on_reading_gets_everything(serve: Serve, path: str) -> None:
    piece = b"x" * 16_000_000

    async def stream() -> AsyncIterator[bytes]:
        yield piece

    bodies: dict[str, Body] = {"/stream": stream(), "/list": [piece], "/whole": piece}
    client = await serve(answering(lambda _: Response(body=bodies[path])), HttpLimits(stall_seconds=60))
    reader, writer = await client.connect()
    writer.write(b"GET %b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % path.encode())
    size = 0
    async with asyncio.timeout(600):
        while part := await reader.read(250_000):
            size += len(part)
            await asyncio.sleep(0.01)
            # In total it takes longer than a reader may stall: progress is what counts.
            pass_time(100 * len(part) / len(piece))
    assert size >= len(piece)
    writer.close()


async def test_a_stream_asked_with_head_is_closed_unread(serve: Serve) -> None:
    class Unread:
        was_closed = False

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        async def __anext__(self) -> bytes:
            raise AssertionError("read although only the headers were asked for")

        async def aclose(self) -> None:
            self.was_closed = True

    unread = Unread()
    client = await serve(answering(lambda _: Response(body=unread)))
    async with within(), client.session.head(client.url) as answer:
        assert answer.status == 200
    assert unread.was_closed


# --- upgrades --------------------------------------------------------------------------------------------

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
MOST_BYTES = 4 << 20


def upgrading(seen: list[bytes | None]) -> Handler:
    async def relay(channel: Channel) -> None:
        while True:
            seen.append(message := await channel.receive())
            if message is None:
                return
            await channel.send(channel.protocol.encode() + b" " + message)

    return answering(lambda _: Response(101, upgrade=Upgrade(PROTOCOLS, relay)))


async def test_an_upgrade_speaks_the_protocol_both_sides_know(serve: Serve) -> None:
    seen: list[bytes | None] = []
    client = await serve(upgrading(seen))
    async with client.session.ws_connect(client.url, protocols=("x", "v4.channel.k8s.io")) as socket:
        await socket.send_bytes(b"\x00in")
        assert await socket.receive_bytes() == b"v4.channel.k8s.io \x00in"
    await until(lambda: seen[-1] is None, seconds=DEADLINE)
    assert seen == [b"\x00in", None]


async def test_a_message_may_have_4_megabytes_and_a_larger_one_ends_the_connection(serve: Serve) -> None:
    seen: list[bytes | None] = []
    client = await serve(upgrading(seen))
    async with client.session.ws_connect(client.url, protocols=PROTOCOLS, max_msg_size=0) as socket:
        await socket.send_bytes(b"x" * (MOST_BYTES - 100))
        assert len(await socket.receive_bytes()) > MOST_BYTES - 100
        await socket.send_bytes(b"x" * (MOST_BYTES + 100))
        async with within():
            last = await socket.receive()
        assert (last.type, last.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
    assert [None if message is None else len(message) for message in seen] == [MOST_BYTES - 100, None]


async def test_an_upgrade_to_an_unknown_protocol_is_refused_and_the_relay_told(serve: Serve) -> None:
    seen: list[bytes | None] = []
    client = await serve(upgrading(seen))
    with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
        await client.session.ws_connect(client.url, protocols=("base64.channel.k8s.io",))
    assert seen == [None]


async def test_a_plain_request_where_an_upgrade_is_needed_is_a_400(serve: Serve) -> None:
    seen: list[bytes | None] = []
    client = await serve(upgrading(seen))
    async with client.session.get(client.url) as answer:
        assert (answer.status, (await answer.json())["message"]) == (400, "Upgrade request required")
    assert seen == [None]


async def test_the_relay_learns_that_the_client_is_gone(serve: Serve) -> None:
    seen: list[bytes | None] = []
    client = await serve(upgrading(seen))
    socket = await client.session.ws_connect(client.url, protocols=PROTOCOLS)
    await socket.send_bytes(b"x")
    await socket.receive_bytes()
    transport = socket.get_extra_info("socket")
    assert transport is not None
    await client.session.close()
    await until(lambda: seen[-1] is None, seconds=DEADLINE)


# --- stopping --------------------------------------------------------------------------------------------


async def test_stopping_ends_streams_in_order_and_lets_requests_finish(serve: Serve) -> None:
    endless = Endless(b"first\n")
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/watch":
            return Response(body=endless.stream())
        arrived.set()
        await go_on.wait()
        return Response(body=b"done")

    async def slow() -> bytes:
        async with client.session.get(f"{client.url}/slow") as answer:
            return await answer.read()

    client = await serve(handler)
    port = client.face.port
    async with within(), client.session.get(f"{client.url}/watch") as watch:
        assert await watch.content.readany() == b"first\n"
        async with asyncio.TaskGroup() as group:
            request = group.create_task(slow())
            await arrived.wait()
            stopping = group.create_task(client.face.stop(seconds=5))
            # An orderly end: the last chunk arrives, so nothing is raised here.
            assert await watch.content.read() == b""
            assert endless.closed.is_set()
            go_on.set()
            assert await request == b"done"
            await stopping
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_stopping_does_not_wait_longer_than_it_is_told(serve: Serve) -> None:
    async def handler(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    client = await serve(handler)
    _, writer = await client.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    async with within():
        await client.face.stop(seconds=0.05)
    writer.close()


async def test_a_task_that_is_cancelled_from_outside_stays_cancelled(serve: Serve) -> None:
    """Only a cancellation by `end_stream` is swallowed."""
    endless = Endless(b"first\n")
    tasks: list[asyncio.Task[object]] = []

    async def handler(request: Request) -> Response:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        return Response(body=endless.stream())

    client = await serve(handler)
    reader, writer = await client.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await reader.readuntil(b"first\n")
    await cancel_and_wait(tasks[0])
    assert tasks[0].cancelled()
    writer.close()
