"""Asking over HTTP: what is sent, what counts as an answer, and servers that do not behave."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podlife.kubelet.probe import (
    HttpResponse,
    NoResponseError,
    PlainResponseError,
    ProbeError,
    container_port,
    http_get,
    http_request,
)
from tests.kit.moved_time import heard, pass_time
from tests.kit.real_parts import free_port

from .servers import answering, ok, own_certificate, serving

CONTAINER = {"name": "a", "ports": [{"name": "web", "containerPort": 8080}, {"containerPort": 1}]}


def request_for(port: int | str, **action: Any) -> Any:
    return http_request({"port": port, **action}, CONTAINER, "127.0.0.1", purpose="probe")


async def get(port: int, seconds: float = 60, **action: Any) -> HttpResponse:
    return await http_get(request_for(port, **action), seconds=seconds)


async def answered(answer: bytes, **action: Any) -> HttpResponse:
    """What a server with this answer comes to."""
    async with serving(answering(answer)) as port:
        return await get(port, **action)


async def request_of(**action: Any) -> tuple[str, list[str]]:
    """The request line and the headers, as they arrive."""
    seen: list[bytes] = []
    async with serving(answering(ok(), seen)) as port:
        await get(port, **action)
    line, *headers = seen[0].decode().replace(f":{port}", ":PORT").strip().split("\r\n")
    return line, headers


async def test_what_is_sent_without_more_said() -> None:
    assert await request_of() == (
        "GET / HTTP/1.1",
        ["Host: 127.0.0.1:PORT", "User-Agent: kube-probe/1.36", "Accept: */*", "Connection: close"],
    )


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("healthz", "/healthz"),
        ("/a b?x=1&y=%20#part", "/a%20b?x=1&y=%20"),
        ("/100%", "/100%25"),
        ("/a\r\nX: 1", "/a%0D%0AX:%201"),
        ("//other/x", "/x"),
        ("/grüße", "/gr%C3%BC%C3%9Fe"),
    ],
)
async def test_a_path_is_sent_as_one_line(path: str, target: str) -> None:
    assert (await request_of(path=path))[0] == f"GET {target} HTTP/1.1"


async def test_headers_of_the_user_replace_ours_and_an_empty_one_takes_ours_away() -> None:
    def headers(*pairs: tuple[str, str]) -> dict[str, Any]:
        return {"httpHeaders": [{"name": name, "value": value} for name, value in pairs]}

    given = headers(
        ("host", "example.com"), ("user-agent", "me"), ("X-A", "1"), ("X-A", "2"), ("Accept", "x/y")
    )
    assert (await request_of(**given))[1] == [
        "Host: example.com",
        "User-Agent: me",
        "X-A: 1",
        "X-A: 2",
        "Accept: x/y",
        "Connection: close",
    ]
    assert (await request_of(**headers(("User-Agent", ""), ("Accept", ""))))[1] == [
        "Host: 127.0.0.1:PORT",
        "Connection: close",
    ]


@pytest.mark.parametrize("header", [("X", "a\r\nY: b"), ("X: 1\r\nY", "b"), ("Host", "a\nb")])
async def test_a_header_that_breaks_out_of_its_line_is_never_sent(header: tuple[str, str]) -> None:
    with pytest.raises(NoResponseError, match="invalid header field"):
        await answered(ok(), httpHeaders=[{"name": header[0], "value": header[1]}])


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("web", 8080), ("81", 81)])
def test_a_port_is_a_number_or_a_name(port: int | str, number: int) -> None:
    assert container_port(port, CONTAINER) == number


@pytest.mark.parametrize("port", [0, 65536, "other", "", "0", "-1", "9" * 40])
def test_a_port_that_there_is_not_cannot_be_asked(port: int | str) -> None:
    with pytest.raises(ProbeError, match="port"):
        container_port(port, CONTAINER)


def test_a_pod_without_an_address_is_not_asked_on_the_node_itself() -> None:
    with pytest.raises(ProbeError, match="no IP"):
        http_request({"port": 80}, CONTAINER, "", purpose="probe")


async def test_responses_are_freed_without_the_garbage_collector() -> None:
    def kept() -> int:
        return sum(type(each).__name__ == "_ResponseReader" for each in gc.get_objects())

    gc.disable()
    try:
        before = kept()
        await answered(ok())
        for broken in (b"", b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"):
            with pytest.raises((ProbeError, NoResponseError)):
                await answered(broken)
        assert kept() == before
    finally:
        gc.enable()


async def test_https_takes_any_certificate() -> None:
    async with serving(answering(ok(b"secret")), own_certificate()) as port:
        assert await get(port, scheme="HTTPS") == HttpResponse(200, b"secret")


async def test_https_answered_by_plain_http_is_told_apart() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request\n")

    async with serving(plain) as port:
        with pytest.raises(PlainResponseError, match="server gave HTTP response to HTTPS client"):
            await get(port, scheme="HTTPS")
    with pytest.raises(NoResponseError) as raised:
        await answered(b"\x00" * 64, scheme="HTTPS", seconds=0.3)
    assert not isinstance(raised.value, PlainResponseError)


async def test_redirects_on_the_same_host_are_followed_with_the_headers() -> None:
    seen: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(request := await reader.readuntil(b"\r\n\r\n"))
        is_last = b"GET /there?x=1 " in request
        writer.write(ok(b"done") if is_last else b"HTTP/1.1 302 F\r\nLocation: there?x=1\r\n\r\n")

    async with serving(script) as port:
        headers = [{"name": "Host", "value": "example.com"}, {"name": "X-A", "value": "1"}]
        assert await get(port, path="/here", httpHeaders=headers) == HttpResponse(200, b"done")
    assert b"Host: example.com" in seen[1]
    assert b"X-A: 1" in seen[1]
    assert f"Referer: http://127.0.0.1:{port}/here".encode() in seen[1]


async def test_ten_requests_in_a_circle_are_enough() -> None:
    seen: list[bytes] = []
    async with serving(answering(b"HTTP/1.1 302 F\r\nLocation: /\r\n\r\n", seen)) as port:
        with pytest.raises(NoResponseError, match="stopped after 10 redirects"):
            await get(port)
    assert len(seen) == 10


@pytest.mark.parametrize("location", ["gopher://x/", "http://[::1", "http://127.0.0.1:99999/"])
async def test_a_location_that_is_none_is_no_answer(location: str) -> None:
    with pytest.raises(NoResponseError, match=r"Location header|unsupported protocol"):
        await answered(f"HTTP/1.1 302 F\r\nLocation: {location}\r\n\r\n".encode())


async def test_a_body_of_any_length_is_read_up_to_ten_kilobytes() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with serving(flood) as port:
        assert await get(port) == HttpResponse(200, b"x" * 10240)


@pytest.mark.parametrize(
    ("answer", "code", "body"),
    [
        # To another host, and to none.
        (b"HTTP/1.1 301 M\r\nLocation: http://localhost:1/\r\n\r\ngo there", 301, b"go there"),
        (b"HTTP/1.1 307 T\r\nContent-Length: 0\r\n\r\n", 307, b""),
        # A protocol switched unasked.
        (b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 101, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, b"hi"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi and more", 200, b"hi"),
    ],
)
async def test_answers_in_every_form(answer: bytes, code: int, body: bytes) -> None:
    assert await answered(answer) == HttpResponse(code, body)


async def test_nobody_there_is_no_answer() -> None:
    port = free_port()
    with pytest.raises(NoResponseError) as raised:
        await get(port, path="/x")
    url = f"http://127.0.0.1:{port}/x"
    assert str(raised.value) == f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'


async def test_a_server_that_hangs_is_waited_for_no_longer_than_allowed() -> None:
    async def listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Of a request, or of a handshake.
        await reader.read(65536)
        pass_time(60)
        await asyncio.Event().wait()

    async with serving(listen_only) as port:
        with pytest.raises(NoResponseError, match=r"context deadline exceeded .*awaiting headers"):
            await get(port, seconds=60)
        with pytest.raises(NoResponseError, match="context deadline exceeded"):
            await get(port, seconds=60, scheme="HTTPS")


async def test_a_body_that_does_not_come_says_nothing_about_the_container() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
        await heard(writer)
        pass_time(60)
        await asyncio.Event().wait()

    async with serving(stall) as port:
        with pytest.raises(ProbeError, match="while reading body"):
            await get(port, seconds=60)
    with pytest.raises(ProbeError, match="unexpected EOF"):
        await answered(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 'malformed HTTP response "SSH-2.0-OpenSSH_9.6"'),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, "headers exceeded"),
    ],
)
async def test_what_is_no_answer_is_told_in_one_line(answer: bytes, says: str) -> None:
    with pytest.raises(NoResponseError) as raised:
        await answered(answer)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    start=st.sampled_from(
        [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 F\r\nLocation: ", b"HTTP/1.1 200 OK\r\n\r\n"]
    ),
    garbage=st.binary(max_size=300),
    scheme=st.sampled_from(["HTTP", "HTTPS"]),
)
def test_whatever_a_server_says_there_is_an_answer_or_one_of_two_errors(
    start: bytes, garbage: bytes, scheme: str
) -> None:
    async def once() -> None:
        async with serving(
            answering(start + garbage) if scheme == "HTTP" else _at_once(start + garbage)
        ) as port:
            try:
                answer = await get(port, seconds=1, scheme=scheme)
            except (ProbeError, NoResponseError):
                return
            assert 100 <= answer.code <= 999

    asyncio.run(once())


def _at_once(data: bytes) -> Any:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return script
