"""Commands in real containers, over the channels of a WebSocket and over SPDY/3.1."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.component.kubelet_server.callers import SPDY_IDS, Caller, over_spdy, over_websocket
from tests.component.kubelet_server.kit import World
from tests.kit.wait import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

Calling = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.mark.parametrize("calling", [partial(over_websocket, version=4), over_websocket, over_spdy])
async def test_a_command_is_heard_on_both_streams_and_its_end_is_told_as_upstream_tells_it(
    web: World, calling: Calling
) -> None:
    async with calling(web, "sh", "-c", "echo out; echo err >&2") as caller:
        assert await caller.status() == {"metadata": {}, "status": "Success"}
    assert (caller.heard["stdout"], caller.heard["stderr"]) == (b"out\n", b"err\n")
    async with calling(web, "sh", "-c", "exit 3") as caller:
        status = await caller.status()
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}
    assert status["message"] == "command terminated with non-zero exit code: exit status 3"


@pytest.mark.parametrize("calling", [over_websocket, over_spdy])
async def test_stdin_that_is_closed_ends_a_command_that_reads_it(web: World, calling: Calling) -> None:
    async with calling(web, "cat", options="input=1&output=1") as caller:
        await caller.say("stdin", b"hello")
        await caller.until("stdout", b"hello")
        await caller.close("stdin")
        assert (await caller.status())["status"] == "Success"


@pytest.mark.parametrize("calling", [over_websocket, over_spdy])
async def test_a_terminal_has_the_size_that_it_is_given(web: World, calling: Calling) -> None:
    async with calling(web, "sh", options="input=1&output=1&tty=1") as caller:
        # In two parts, as a stream may be cut anywhere.
        await caller.say("resize", b'{"Width":123,')
        await caller.say("resize", b'"Height":45}\n')
        await caller.say("stdin", b"stty size; exit 7\n")
        status = await caller.status()
    assert b"45 123" in caller.heard["stdout"]
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


async def test_over_spdy_every_stream_is_closed_at_the_end(web: World) -> None:
    async with over_spdy(web, "true") as caller:
        await caller.status()
    assert caller.ended == {"error", "stdout", "stderr"}


async def test_a_command_that_is_not_there_is_told_as_a_failure(web: World) -> None:
    async with over_websocket(web, "/there/is/no/such/program") as call:
        status = await call.status()
    assert status["reason"] == "InternalError"
    assert "error executing command in container: cannot run '/there/is/no/such/program'" in status["message"]


async def test_a_caller_that_goes_away_takes_its_command_along(web: World) -> None:
    mark = web.folder / "mark"
    async with over_websocket(web, "sh", "-c", f"echo $$ > {mark}; echo here; exec sleep 100") as call:
        await call.until("stdout", b"here")
    pid = int(mark.read_text())
    await until(lambda: not _runs(pid))


async def test_a_lot_of_output_comes_whole(web: World) -> None:
    async with over_websocket(web, "sh", "-c", "head -c 5000000 /dev/zero") as call:
        assert (await call.status())["status"] == "Success"
    assert len(call.heard["stdout"]) == 5_000_000


@pytest.mark.parametrize(
    ("path", "code", "line"),
    [
        ("/exec/default/none/main?output=1&command=true", 404, "pod does not exist"),
        ("/exec/default/web/none?output=1&command=true", 404, 'container not found ("none")'),
        ("/exec/default/web/another-uid/main?output=1&command=true", 404, "pod not found"),
        ("/exec/default/web/main?command=true", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/web/main?output=1", 400, "you must specify at least one command for the container"),
        ("/exec/default/web/main?output=1&command=true", 400, "Upgrade request required"),
        ("/attach/default/web/main?output=1", 400, "Upgrade request required"),
        ("/attach/default/web/none?output=1", 404, 'container not found ("none")'),
        ("/attach/default/web/main", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/portForward/default/web", 400, "Upgrade request required"),
        ("/portForward/default/none", 404, "pod does not exist"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(web: World, path: str, code: int, line: str) -> None:
    assert await web.get(path) == (code, line)


async def test_a_message_of_more_than_4_megabytes_ends_the_connection(web: World) -> None:
    async with over_websocket(web, "cat", options="input=1&output=1") as cat:
        await cat.socket.send_bytes(b"\0" + b"x" * (4 << 20))
        while (last := await cat.socket.receive()).type is aiohttp.WSMsgType.BINARY:
            pass
        assert (last.type, last.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)


async def test_an_unknown_protocol_is_refused(web: World) -> None:
    url = f"{web.url}/exec/default/web/main?output=1&command=true"
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await web.caller().ws_connect(url, protocols=["v1.channel.k8s.io"])
    assert refused.value.status == 400


async def test_a_lot_of_input_comes_whole_though_the_command_reads_it_late(web: World) -> None:
    megabytes = 20
    go = web.folder / "go"
    os.mkfifo(go)
    script = f"echo here; read x < {go}; wc -c"
    async with over_spdy(web, "sh", "-c", script, options="input=1&output=1") as caller:
        for _ in range(megabytes):
            await caller.say("stdin", bytes(1_000_000))
        await caller.close("stdin")
        await caller.until("stdout", b"here\n")
        await asyncio.to_thread(go.write_text, "x\n")
        assert (await caller.status())["status"] == "Success"
    assert int(caller.heard["stdout"].removeprefix(b"here\n")) == megabytes * 1_000_000


async def test_pings_are_answered_and_streams_nobody_asked_for_refused(web: World) -> None:
    async with over_spdy(web, "cat", options="input=1&output=1") as caller:
        caller.open(SPDY_IDS["stdin"], "stdin")
        caller.open(11, "more")
        caller.writer.write(caller.frame.ping(7))
        while not caller.pings:
            assert await caller.hear()
        await caller.close("stdin")
        assert (await caller.status())["status"] == "Success"
    assert (caller.pings, caller.refused) == ([7], [SPDY_IDS["stdin"], 11])


async def test_garbage_ends_the_connection_and_its_command(web: World) -> None:
    async with over_spdy(web, "sh", "-c", "echo here; sleep 100") as caller:
        await caller.until("stdout", b"here")
        caller.writer.write(b"\xff" * 100)
        while await caller.hear():
            pass
    assert "error" not in caller.heard


async def test_a_protocol_that_is_not_known_is_refused(web: World) -> None:
    with pytest.raises(AssertionError, match=r"403 Forbidden"):
        async with over_spdy(web, "true", version=2):
            pass


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
