"""The transport over real sockets: TLS, credentials, and servers that stop, cut off and say nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import warnings
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podlife.client import (
    PODS,
    Client,
    Connection,
    DeadlineError,
    HttpTransport,
    LogOptions,
    NotSentError,
    TokenAuth,
    TokenFileAuth,
)
from podlife.client.credentials import Credential
from podlife.errors import ConfigError, UnauthorizedError, UnreachableError
from tests.component.client.authority import Authority
from tests.component.client.servers import (
    HEAD,
    Recording,
    Renewable,
    answering,
    client_of,
    listen,
    serve,
    serve_raw,
    tunnel_of,
    whole,
)
from tests.kit.moved_time import heard, pass_time

NOBODY = "https://127.0.0.1:1"

POD = {"metadata": {"name": "a", "namespace": "ns"}}


async def test_credentials_and_impersonation_go_with_every_request() -> None:
    seen = Recording(POD)
    groups = (("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    async with serve(seen) as server:
        connection = Connection(server, auth=TokenAuth("abc"), impersonation=groups)
        async with Client.connect(connection) as client:
            assert await client.get(PODS, "a", "ns") == POD
    headers = seen.requests[0].headers
    assert headers["Authorization"] == "Bearer abc"
    assert headers.getall("Impersonate-Group") == ["a", "b"]
    assert headers["User-Agent"].startswith("podlife/")
    assert headers["Accept"] == "application/json"


@pytest.mark.parametrize(
    ("host", "proxy"),
    [
        ("api.example", ""),
        ("127.0.0.1.example", ""),
        ("127.example", ""),
        ("localhost.example", ""),
        ("127.0.0.1:8001", "http://proxy.example"),
    ],
)
def test_over_plain_http_no_credential_leaves_this_machine(host: str, proxy: str) -> None:
    transport = HttpTransport(Connection(f"http://{host}", auth=TokenAuth("abc"), proxy_url=proxy))
    assert asyncio.run(transport._credentials.current()) == Credential()


async def test_a_path_under_the_servers_address_and_a_name_that_needs_quoting_arrive_whole() -> None:
    seen = Recording({})
    async with serve(seen) as server, Client.connect(Connection(f"{server}/k8s/c 1/d%20e/é/")) as client:
        await client.get(PODS, "system:a b", "ns")
        await client.request("GET", "/version", query={"labelSelector": "a in (b,c)"})
    assert [each.raw_path for each in seen.requests] == [
        "/k8s/c%201/d%20e/%C3%A9/api/v1/namespaces/ns/pods/system:a%20b",
        "/k8s/c%201/d%20e/%C3%A9/version?labelSelector=a+in+%28b%2Cc%29",
    ]


async def test_after_a_401_the_request_goes_out_once_more_with_renewed_credentials(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        if len(seen) == 1:
            token.write_text("new")
        return web.json_response(POD, status=200 if seen[-1] == "Bearer new" else 401)

    async with serve(handler) as server:
        connection = Connection(server, auth=TokenFileAuth(token))
        async with Client.connect(connection) as client:
            assert await client.create(PODS, POD) == POD
            assert seen == ["Bearer old", "Bearer new"]
            token.write_text("newer")
            assert await client.get(PODS, "a", "ns") == POD


async def test_a_token_that_stays_wrong_is_an_unauthorized_error() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=401, text="no")

    async with serve(handler) as server, Client.connect(Connection(server, auth=TokenAuth("x"))) as client:
        with pytest.raises(UnauthorizedError):
            await client.get(PODS, "a", "ns")


async def test_a_server_that_never_answers_meets_the_deadline() -> None:
    async def handler(request: web.Request) -> web.Response:
        pass_time(60)
        await asyncio.Event().wait()
        raise AssertionError

    async with serve(handler) as server, Client.connect(Connection(server), timeout_seconds=60) as client:
        with pytest.raises(DeadlineError, match=r"did not answer GET /api/v1/namespaces/ns/pods/a"):
            await client.get(PODS, "a", "ns")


async def test_a_body_that_stops_halfway_meets_the_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b'Content-Length: 100\r\n\r\n{"metadata"')
        await heard(writer)
        pass_time(60)
        await reader.read()

    async with client_of(script) as client:
        with pytest.raises(DeadlineError, match="not complete"):
            await client.get(PODS, "a", "ns")


async def test_a_read_whose_body_is_cut_off_is_repeated_until_it_is_whole() -> None:
    requests = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        body = b'{"metadata":{"name":"a"}}'
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
        writer.write(body if requests == 3 else body[:5])

    async with client_of(script) as client:
        assert await client.get(PODS, "a", "ns") == {"metadata": {"name": "a"}}
    assert requests == 3


async def test_a_write_whose_answer_is_cut_off_is_never_repeated() -> None:
    requests = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        if requests == 1:
            writer.write(HEAD + b"Content-Length: 100\r\n\r\n{")

    async with client_of(script) as client:
        with pytest.raises(UnreachableError, match="cut off"):
            await client.create(PODS, POD)
        with pytest.raises(UnreachableError, match="closed the connection"):
            await client.delete(PODS, "a", "ns")
    assert requests == 2


async def test_a_server_that_is_not_there_is_told_in_one_line() -> None:
    async with Client.connect(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(
            NotSentError, match=r"^http://127.0.0.1:1 cannot be reached: .*; check the address"
        ):
            await client.create(PODS, POD)


async def test_a_closed_client_sends_nothing() -> None:
    async with serve(Recording(POD)) as server:
        client = Client.connect(Connection(server))
        await client.get(PODS, "a", "ns")
        await client.close()
        with pytest.raises(NotSentError, match="closed"):
            await client.get(PODS, "a", "ns")


async def who(request: web.Request) -> web.Response:
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    subject = {key: value for part in certificate.get("subject", ()) for key, value in part}
    return web.json_response({"user": subject.get("commonName", "")})


async def test_a_client_certificate_given_inline_proves_who_we_are_and_leaves_no_file(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    certificate, key = authority.issue("me")
    async with serve(who, authority.server_context()) as server:
        connection = Connection(
            server, certificate_authority=authority.pem, client_certificate=certificate, client_key=key
        )
        async with Client.connect(connection) as client:
            assert await client.get(PODS, "a", "ns") == {"user": "me"}
    assert list(folder.iterdir()) == []


async def test_a_login_that_fails_after_a_401_is_what_the_caller_hears_of() -> None:
    class Failing(Renewable):
        async def renew(self, refused: Credential) -> bool:
            raise ConfigError("log in again")

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=401)

    async with serve(handler) as server, Client(HttpTransport(Connection(server), Failing())) as client:
        with pytest.raises(ConfigError, match="log in again"):
            await client.get(PODS, "a", "ns")
        assert client.limiter.state.in_flight == 0


async def test_a_new_client_certificate_is_used_from_then_on(authority: Authority, tmp_path: Path) -> None:
    credentials = Renewable(*authority.issue("first"))
    async with serve(who, authority.server_context()) as server:
        connection = Connection(server, certificate_authority=authority.pem)
        async with Client(HttpTransport(connection, credentials)) as client:
            assert await client.get(PODS, "a", "ns") == {"user": "first"}
            credentials.credential = Credential("", *authority.issue("second"))
            assert await client.get(PODS, "a", "ns") == {"user": "second"}


async def test_a_server_that_is_not_trusted_is_refused_in_one_line_and_not_tried_again(
    authority: Authority, tmp_path: Path
) -> None:
    async with serve(who, authority.server_context()) as server:
        stranger = Connection(server, certificate_authority=Authority().pem)
        async with Client.connect(stranger) as client:
            with pytest.raises(
                NotSentError, match=r"is not trusted: .*; check certificate-authority"
            ) as refused:
                await client.get(PODS, "a", "ns")
        assert refused.value.is_lasting
        async with Client.connect(replace(stranger, certificate_authority=b"", is_insecure=True)) as client:
            assert await client.get(PODS, "a", "ns") == {"user": ""}


async def test_tls_server_name_is_what_the_certificate_is_held_against(
    authority: Authority, tmp_path: Path
) -> None:
    async with serve(who, authority.server_context("inner.example")) as server:
        by_name = Connection(server, certificate_authority=authority.pem, tls_server_name="inner.example")
        async with Client.connect(by_name) as client:
            assert await client.get(PODS, "a", "ns") == {"user": ""}
        async with Client.connect(replace(by_name, tls_server_name="other.example")) as client:
            with pytest.raises(NotSentError, match="not trusted"):
                await client.get(PODS, "a", "ns")


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (Connection(NOBODY, certificate_authority=b"nonsense"), "the certificate authority is not PEM"),
        (
            Connection(NOBODY, client_certificate=b"a", client_key=b"b"),
            "are not PEM or do not belong together",
        ),
    ],
)
async def test_bad_certificates_are_a_matter_of_configuration(connection: Connection, message: str) -> None:
    async with Client.connect(connection) as client:
        with pytest.raises(ConfigError, match=message):
            await client.get(PODS, "a", "ns")


async def test_an_encrypted_key_is_refused_without_asking_for_its_password(authority: Authority) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pw"),
    )
    connection = Connection(NOBODY, client_certificate=authority.issue("me")[0], client_key=encrypted)
    async with Client.connect(connection) as client:
        with pytest.raises(ConfigError, match="the client key is encrypted; decrypt it first"):
            await client.get(PODS, "a", "ns")


async def test_requests_go_through_the_proxy_that_is_configured() -> None:
    proxy = Recording(POD)
    async with serve(proxy) as address:
        connection = Connection("http://api.example:8080", proxy_url=address)
        async with Client.connect(connection) as client:
            assert await client.get(PODS, "a", "ns") == POD
    asked = [str(each.url) for each in proxy.requests]
    assert asked == ["http://api.example:8080/api/v1/namespaces/ns/pods/a"]


async def test_a_stream_that_its_reader_leaves_ends_at_the_server_too() -> None:
    has_ended = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: 100\r\n\r\nline")
        await reader.read()
        has_ended.set()

    async with client_of(script) as client:
        stream = client.logs("a", "ns")
        assert await anext(stream) == b"line"
        assert not has_ended.is_set()
        await stream.aclose()
        async with asyncio.timeout(60):
            await has_ended.wait()


@pytest.mark.parametrize("is_chunked", [True, False])
async def test_requests_one_after_the_other_share_a_connection(is_chunked: bool) -> None:
    ports: set[int] = set()

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        response = web.json_response(POD)
        if is_chunked:
            response.enable_chunked_encoding()
        return response

    async with serve(handler) as server, Client.connect(Connection(server)) as client:
        for _ in range(5):
            assert await client.get(PODS, "a", "ns") == POD
        assert len(ports) == 1
        await asyncio.gather(*(client.get(PODS, "a", "ns") for _ in range(5)))
        assert 1 < len(ports) <= 5


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    seen = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        writer.write(whole(json.dumps(POD).encode(), b"Connection: close"))
        await reader.read()

    async with client_of(script) as client:
        for _ in range(3):
            assert await client.get(PODS, "a", "ns") == POD
    assert seen == 3


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    script = answering(HEAD + b"\r\n" + json.dumps(POD).encode(), is_left_open=False)
    async with client_of(script) as client:
        assert await client.get(PODS, "a", "ns") == POD


async def test_a_server_that_sends_faster_than_is_read_has_to_wait() -> None:
    sent = 0
    is_stuck = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD + b"\r\n")
        try:
            async with asyncio.timeout(2):
                while sent < 256 << 20:
                    writer.write(b"a" * (1 << 20))
                    await writer.drain()
                    sent += 1 << 20
        except TimeoutError:
            is_stuck.set()

    async with client_of(script) as client:
        pieces = client.logs("a", "ns")
        async with aclosing(pieces):
            await anext(pieces)
            await is_stuck.wait()
    assert sent < 64 << 20


@pytest.mark.parametrize("value", ["a\r\nX-Injected: b", "a\nb", "a\rb"])
async def test_a_line_break_in_a_header_never_reaches_the_wire(value: str) -> None:
    async with serve(Recording(POD)) as server, Client.connect(Connection(server)) as client:
        with pytest.raises(ValueError, match="line break"):
            await client.request("GET", "/version", headers={"X-Name": value})


async def test_tls_goes_through_a_proxy_that_only_passes_bytes_on(
    authority: Authority, tmp_path: Path
) -> None:
    asked: list[bytes] = []

    async with serve(who, authority.server_context()) as server, listen(tunnel_of(asked)) as proxy:
        connection = Connection(
            server,
            certificate_authority=authority.pem,
            proxy_url=proxy.server.replace("//", "//me:secret@"),
            auth=TokenAuth("for the server alone"),
        )
        async with Client.connect(connection) as client:
            assert await client.get(PODS, "a", "ns") == {"user": ""}
    assert asked[0].startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in asked[0]
    assert b"for the server alone" not in b"".join(asked)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b""])
async def test_a_proxy_that_refuses_is_named(authority: Authority, answer: bytes) -> None:
    async with serve_raw(answering(answer, is_left_open=False)) as proxy:
        connection = Connection(NOBODY, certificate_authority=authority.pem, proxy_url=proxy)
        async with Client.connect(connection, timeout_seconds=60) as client:
            with pytest.raises(NotSentError, match=r"^the proxy for https://\S+ cannot be used"):
                await client.create(PODS, {**POD}, "ns")


def test_a_stream_that_is_left_waits_for_no_farewell_of_its_server(
    authority: Authority, tmp_path: Path
) -> None:
    context = authority.server_context()
    is_over = threading.Event()

    def stay_silent(listener: socket.socket) -> None:
        # After the first piece it neither reads nor writes: the end of TLS that a client offers is not answered.
        with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            is_over.wait(60)

    async def read_a_piece(port: int) -> None:
        connection = Connection(f"https://127.0.0.1:{port}", certificate_authority=authority.pem)
        async with Client.connect(connection) as client:
            pieces = client.logs("a", "ns", LogOptions(follow=True))
            async with aclosing(pieces):
                assert await anext(pieces) == b"a"

    with socket.create_server(("127.0.0.1", 0)) as listener, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        # What earlier tests have left to the collector is no complaint of this one.
        gc.collect()
        warned.clear()
        server = threading.Thread(target=stay_silent, args=(listener,))
        server.start()
        try:
            asyncio.run(read_a_piece(listener.getsockname()[1]))
        finally:
            is_over.set()
            server.join()
        gc.collect()
    assert not [str(each.message) for each in warned if "transport" in str(each.message)]


async def test_watches_take_no_connection_away_from_requests() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if "follow" not in request.query:
            return web.json_response(POD)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"line\n")
        await asyncio.Event().wait()
        raise AssertionError

    async with serve(handler) as server, Client.connect(Connection(server)) as client:
        streams = []
        for _ in range(150):
            stream = client.logs("a", "ns", LogOptions(follow=True))
            assert await anext(stream) == b"line\n"
            streams.append(stream)
        assert client.limiter.state.in_flight == 0
        assert await client.get(PODS, "a", "ns") == POD
        for stream in streams:
            await stream.aclose()
