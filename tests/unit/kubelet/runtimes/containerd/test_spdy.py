"""Our half of SPDY against a server that reads what goes over the wire, byte by byte."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from podlife.kubelet.runtimes.containerd.spdy import SpdyConnection, upgraded
from podlife.kubelet.spdy import DICTIONARY, SpdyError
from tests.unit.kubelet.probe.servers import Script, answering, serving

_SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"


@asynccontextmanager
async def connected(script: Script) -> AsyncIterator[SpdyConnection]:
    async with (
        serving(script) as port,
        asyncio.timeout(60),
        upgraded(f"http://127.0.0.1:{port}/exec/token", "v4.channel.k8s.io") as connection,
    ):
        yield connection


def is_open() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def frame(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    first, second = struct.unpack(">II", await reader.readexactly(8))
    return first, second >> 24, await reader.readexactly(second & 0xFFFFFF)


async def test_streams_are_opened_with_their_kind_and_data_goes_both_ways() -> None:
    heard: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(_SWITCHED)
        inflate = zlib.decompressobj(zdict=DICTIONARY)
        for _ in range(2):
            first, _, body = await frame(reader)
            assert first == 0x80030001
            heard.append((struct.unpack(">I", body[:4])[0], inflate.decompress(body[10:])))
        heard.append(await frame(reader))
        heard.append(await frame(reader))
        # A ping of the server's, data, the end of one stream, and the reset of the other.
        writer.write(struct.pack(">III", 0x80030006, 4, 8))
        writer.write(struct.pack(">II", 3, 5) + b"hello")
        writer.write(struct.pack(">II", 3, 0x01000000))
        writer.write(struct.pack(">IIII", 0x80030003, 8, 1, 5))
        heard.append(await frame(reader))

    got: list[bytes] = []
    ends: list[str] = []
    async with connected(serve) as connection:
        stdin = connection.open_stream("stdin", got.append, lambda: ends.append("stdin"))
        connection.open_stream("stdout", got.append, lambda: ends.append("stdout"))
        await connection.send(stdin, b"data")
        await connection.finish(stdin)
        await connection.pump(is_open())
        await asyncio.sleep(0.01)
    assert "POST /exec/token HTTP/1.1" in str(heard[0])
    assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in str(heard[0])
    pair = struct.pack(">II", 1, 10) + b"streamtype" + struct.pack(">I", 5)
    assert heard[1] == (1, pair + b"stdin")
    assert heard[2] == (3, pair[:-1] + b"\x06stdout")
    assert heard[3:5] == [(1, 0, b"data"), (1, 1, b"")]
    assert heard[5] == (0x80030006, 0, struct.pack(">I", 8))
    assert (got, ends) == ([b"hello"], ["stdout", "stdin"])


async def test_a_server_that_breaks_off_ends_every_stream() -> None:
    ends: list[int] = []
    async with connected(answering(_SWITCHED + b"\x80\x03")) as connection:
        for number in (1, 2):
            connection.open_stream("stdout", lambda _: None, partial(ends.append, number))
        await connection.pump(is_open())
    assert ends == [1, 2]


async def test_a_frame_that_is_far_too_long_ends_the_connection() -> None:
    async with connected(answering(_SWITCHED + struct.pack(">II", 1, 0xFFFFFF))) as connection:
        connection.open_stream("stdout", lambda _: None, lambda: None)
        with pytest.raises(SpdyError, match="16777215 bytes"):
            await connection.pump(is_open())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found"),
        (b"", "does not answer as HTTP"),
        (b"x" * 100_000, "HTTP"),
    ],
)
async def test_a_server_that_does_not_switch_is_told(answer: bytes, told: str) -> None:
    with pytest.raises(SpdyError, match=told):
        async with connected(answering(answer)):
            pass


async def test_an_address_that_is_not_plain_http_is_told() -> None:
    with pytest.raises(SpdyError, match="turn off TLS"):
        async with upgraded("https://127.0.0.1:1/exec/token", "v4.channel.k8s.io"):
            pass
