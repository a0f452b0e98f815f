"""Commands in real containers over SPDY/3.1, with a client that can be as rude as a test needs."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from podlife.kubelet.spdy.dictionary import DICTIONARY
from podlife.kubelet.spdy.frames import FrameReader, FrameWriter, GoAway, Ping, StreamData, StreamReset
from tests.component.kubelet_server.kit import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

IDS = {"error": 1, "stdin": 3, "stdout": 5, "stderr": 7, "resize": 9}


class Caller:
    """One connection. What it hears is kept by stream; `ended` are the streams that have."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.frames, self.frame = FrameReader(), FrameWriter()
        self._pack = zlib.compressobj(zdict=DICTIONARY)
        self.heard: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.pings: list[int] = []
        self.refused: list[int] = []
        self.is_over = False

    def open(self, *kinds: str) -> None:
        for kind in kinds:
            self.open_as(IDS[kind], {"streamtype": kind})

    def open_as(self, stream_id: int, headers: Mapping[str, str]) -> None:
        block = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                block += struct.pack(">I", len(text)) + text.encode()
        packed = self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", stream_id, 0, 0) + packed
        self.writer.write(struct.pack(">II", 0x80030001, len(body)) + body)

    def say(self, kind: str, data: bytes, *, is_last: bool = False) -> None:
        self.writer.write(self.frame.data(IDS[kind], data, is_last=is_last))

    async def until(self, kind: str, text: bytes) -> None:
        while text not in self.heard.get(IDS[kind], b""):
            assert await self.hear(), self.heard

    async def status(self) -> dict[str, Any]:
        while not self.is_over and await self.hear():
            pass
        return dict(json.loads(self.heard[IDS["error"]]))

    async def hear(self) -> bool:
        """Whether there was anything more."""
        async with asyncio.timeout(60):
            data = await self.reader.read(65536)
        for frame in self.frames.feed(data):
            match frame:
                case StreamData():
                    self.heard[frame.stream_id] = self.heard.get(frame.stream_id, b"") + frame.data
                    if frame.is_last:
                        self.ended.add(frame.stream_id)
                case Ping():
                    self.pings.append(frame.number)
                case StreamReset():
                    self.refused.append(frame.stream_id)
                case GoAway():
                    self.is_over = True
        return bool(data)


@asynccontextmanager
async def calling(
    world: World, *command: str, options: str = "output=1&error=1", protocol: str = "v4.channel.k8s.io"
) -> AsyncIterator[Caller]:
    port = world.endpoint.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=world.trusting())
    query = urlencode([("command", part) for part in command])
    writer.write(
        f"POST /exec/default/web/main?{options}&{query} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\n"
        f"Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n"
        f"X-Stream-Protocol-Version: {protocol}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in answer
        yield Caller(reader, writer)
    finally:
        writer.close()


async def test_a_command_is_heard_on_both_streams_and_every_stream_is_closed(web: World) -> None:
    async with calling(web, "sh", "-c", "echo out; echo err >&2; exit 3") as caller:
        caller.open("error", "stdout", "stderr")
        status = await caller.status()
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert (caller.heard[IDS["stdout"]], caller.heard[IDS["stderr"]]) == (b"out\n", b"err\n")
    assert caller.ended == {IDS["error"], IDS["stdout"], IDS["stderr"]}


async def test_stdin_that_is_closed_ends_a_command_that_reads_it(web: World) -> None:
    async with calling(web, "cat", options="input=1&output=1") as caller:
        caller.open("error", "stdin", "stdout")
        caller.say("stdin", b"hello")
        await caller.until("stdout", b"hello")
        caller.say("stdin", b"", is_last=True)
        assert (await caller.status())["status"] == "Success"


async def test_a_terminal_has_the_size_that_it_is_given(web: World) -> None:
    async with calling(web, "sh", options="input=1&output=1&tty=1") as caller:
        caller.open("error", "stdin", "stdout", "resize")
        caller.say("resize", b'{"Width":123,"Height":45}\n')
        caller.say("stdin", b"stty size; exit 0\n")
        assert (await caller.status())["status"] == "Success"
    assert b"45 123" in caller.heard[IDS["stdout"]]


async def test_a_lot_of_input_comes_whole_though_the_command_reads_it_late(web: World) -> None:
    megabytes = 20
    go = web.folder / "go"
    os.mkfifo(go)
    script = f"echo here; read x < {go}; wc -c"
    async with calling(web, "sh", "-c", script, options="input=1&output=1") as caller:
        caller.open("error", "stdin", "stdout")
        for _ in range(megabytes):
            caller.say("stdin", bytes(1_000_000))
        caller.say("stdin", b"", is_last=True)
        await caller.until("stdout", b"here\n")
        await asyncio.to_thread(go.write_text, "x\n")
        assert (await caller.status())["status"] == "Success"
    assert int(caller.heard[IDS["stdout"]].removeprefix(b"here\n")) == megabytes * 1_000_000


async def test_pings_are_answered_and_streams_nobody_asked_for_refused(web: World) -> None:
    async with calling(web, "cat", options="input=1&output=1") as caller:
        caller.open("error", "stdin", "stdout", "stdin")
        caller.open_as(11, {"streamtype": "more"})
        caller.writer.write(caller.frame.ping(7))
        while not caller.pings:
            assert await caller.hear()
        caller.say("stdin", b"", is_last=True)
        assert (await caller.status())["status"] == "Success"
    assert (caller.pings, caller.refused) == ([7], [IDS["stdin"], 11])


async def test_garbage_ends_the_connection_and_its_command(web: World) -> None:
    async with calling(web, "sh", "-c", "echo here; sleep 100") as caller:
        caller.open("error", "stdout", "stderr")
        await caller.until("stdout", b"here")
        caller.writer.write(b"\xff" * 100)
        while await caller.hear():
            pass
    assert IDS["error"] not in caller.heard


async def test_a_protocol_that_is_not_known_is_refused(web: World) -> None:
    with pytest.raises(AssertionError, match=r"403 Forbidden"):
        async with calling(web, "true", protocol="v2.channel.k8s.io"):
            pass
