"""The gRPC health check, by servers that speak HTTP/2 frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.kubelet.probe import NoResponseError, grpc_health
from tests.kit.moved_time import heard, pass_time
from tests.kit.real_parts import free_port

from .servers import Script, answering, hanging, serving

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(type_: int, payload: bytes = b"", *, flags: int = 0, stream: int = 1) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([type_, flags]) + stream.to_bytes(4, "big") + payload


def encode(*pairs: tuple[str, str]) -> bytes:
    return hpack.Encoder().encode(pairs)


def headers(*pairs: tuple[str, str], flags: int = 4) -> bytes:
    return frame(HEADERS, encode(*pairs), flags=flags)


def message(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


HELLO = frame(SETTINGS, stream=0)
STATUS = headers((":status", "200"), ("content-type", "application/grpc"))
TRAILERS = headers(("grpc-status", "0"), flags=5)
SERVING = frame(DATA, message(b"\x08\x01"))


def speaking(*frames: bytes, hello: bytes = HELLO, seen: list[bytes] | None = None) -> Script:
    """Says hello, waits for the call and answers with the frames."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(PREFACE)) == PREFACE
        writer.write(hello)
        while True:
            head = await reader.readexactly(9)
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if seen is not None:
                seen.append(head + payload)
            if head[3] == DATA:
                break
        for each in frames:
            writer.write(each)
            await writer.drain()
        writer.write_eof()
        await reader.read()

    return script


async def check(script: Script, service: str = "", seconds: float = 60) -> str:
    """What is wrong, nothing if all is well."""
    async with serving(script) as port:
        try:
            await grpc_health("127.0.0.1", port, service, seconds=seconds)
        except NoResponseError as error:
            return str(error).replace(str(port), "PORT")
    return ""


async def test_a_server_that_serves_is_well_and_is_asked_for_the_service_by_name() -> None:
    seen: list[bytes] = []
    assert await check(speaking(STATUS, SERVING, TRAILERS, seen=seen), "shop") == ""
    asked = next(each for each in seen if each[3] == HEADERS)
    pairs = dict(hpack.Decoder().decode(asked[9:], raw=True))
    assert (pairs[b":path"], pairs[b"user-agent"]) == (b"/grpc.health.v1.Health/Check", b"kube-probe/1.36")
    assert (pairs[b":method"], pairs[b"te"]) == (b"POST", b"trailers")
    assert pairs[b"content-type"] == b"application/grpc"
    assert seen[-1] == frame(DATA, message(b"\x0a\x04shop"), flags=1)


async def test_frames_of_every_kind_between_change_nothing() -> None:
    trailers = encode(("grpc-status", "0"))
    assert (
        await check(
            speaking(
                frame(PING, b"12345678", stream=0),
                frame(99, b"a frame of tomorrow"),
                frame(8, b"\0\0\xff\xff", stream=0),
                STATUS,
                frame(GOAWAY, b"\0\0\0\x01\0\0\0\0", stream=0),
                # Padded by two bytes.
                frame(DATA, b"\x02" + message(b"\x08\x01") + b"\0\0", flags=8),
                # With a priority, and in two pieces.
                frame(HEADERS, b"\0\0\0\0\x10" + trailers[:3], flags=0x21),
                frame(CONTINUATION, trailers[3:], flags=4),
                # Behind the end nothing counts.
                b"\xff" * 9,
            )
        )
        == ""
    )


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        (
            [STATUS, frame(DATA, message(b"\x08\x02")), TRAILERS],
            'service unhealthy (responded with "NOT_SERVING")',
        ),
        ([STATUS, frame(DATA, message(b"")), TRAILERS], 'service unhealthy (responded with "UNKNOWN")'),
        ([STATUS, frame(DATA, message(b"\x08\x63")), TRAILERS], 'service unhealthy (responded with "99")'),
        (
            [headers((":status", "200"), ("grpc-status", "5"), ("grpc-message", "un%20known"), flags=5)],
            "error: health rpc probe failed: rpc error: code = NotFound desc = un known",
        ),
        (
            [headers((":status", "200"), ("grpc-status", "12"), ("grpc-message", "no"), flags=5)],
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no",
        ),
        (
            [headers((":status", "503"), flags=5)],
            (
                "error: health rpc probe failed: rpc error: code = Unavailable desc = unexpected HTTP status code "
                "received from server: 503 (Service Unavailable)"
            ),
        ),
        ([headers((":status", "404"), flags=5)], "error: this server does not implement"),
        ([headers((":status", "200"), ("grpc-status", "x" * 99), flags=5)], "code = Code(xxxxxxxxxx)"),
        ([STATUS, SERVING, headers(("a", "b"), flags=5)], "without sending trailers"),
        ([STATUS, frame(DATA, b"\x01\0\0\0\x02\x08\x01"), TRAILERS], "not one plain message"),
        ([STATUS, frame(DATA, message(b"\x08")), TRAILERS], "failed to unmarshal"),
        ([STATUS, frame(DATA, message(b"\x0a\xff\x01")), TRAILERS], "failed to unmarshal"),
        ([STATUS, frame(RESET, b"\0\0\0\x07")], "code = Canceled desc = stream ended by the server"),
        ([frame(GOAWAY, b"\0\0\0\0\0\0\0\0", stream=0)], "the server goes away"),
        ([STATUS], "code = Unavailable desc = error reading from server: EOF"),
        ([frame(HEADERS, b"\xff\xff\xff\xff\xff\xff\xff", flags=4)], "COMPRESSION_ERROR"),
        ([frame(HEADERS, b"\x40", flags=0), frame(DATA, b"")], "PROTOCOL_ERROR"),
        ([frame(DATA, b"", flags=8)], "PROTOCOL_ERROR"),
        ([SERVING, TRAILERS], "PROTOCOL_ERROR"),
        ([STATUS, SERVING, headers(("grpc-status", "0"))], "PROTOCOL_ERROR"),
        ([STATUS, frame(8, bytes(4), stream=0), SERVING, TRAILERS], "PROTOCOL_ERROR"),
        ([frame(PING, b"12345678", stream=0)] * 20000, "more than 262144 bytes"),
        ([b"\xff" * 9], "frame too large"),
    ],
)
async def test_everything_else_is_ill_and_says_why(frames: Sequence[bytes], says: str) -> None:
    assert says in await check(speaking(*frames))


async def test_who_does_not_speak_the_protocol_was_never_connected_to() -> None:
    failed = 'error: failed to connect service at "127.0.0.1:PORT": error reading'
    assert (await check(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"))).startswith(failed)
    assert (await check(answering(b""))).startswith(failed)
    assert (await check(speaking(hello=frame(PING, b"12345678", stream=0)))).startswith(failed)
    with pytest.raises(NoResponseError, match="connection refused"):
        await grpc_health("127.0.0.1", free_port(), "", seconds=60)


async def test_a_server_that_hangs_is_waited_for_no_longer_than_allowed() -> None:
    said = await check(hanging, seconds=0.05)
    assert (
        said == 'timeout: failed to connect service "127.0.0.1:PORT" within 0.05s: context deadline exceeded'
    )

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO)
        await heard(writer)
        pass_time(90)
        await asyncio.Event().wait()

    assert await check(silent, seconds=90) == "timeout: health rpc did not complete within 1m30s"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from([STATUS, SERVING, TRAILERS]), st.binary(max_size=40)), max_size=5))
def test_whatever_a_server_says_the_check_ends(frames: list[bytes]) -> None:
    said = asyncio.run(check(speaking(*frames), seconds=1))
    assert isinstance(said, str)
