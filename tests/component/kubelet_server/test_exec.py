"""Commands in real containers, over the WebSocket channels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from tests.component.kubelet_server.kit import World
from tests.kit.wait import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)


class Exec:
    """A caller of a command. What it hears is kept by channel."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[bool]) -> None:
        self.socket = socket
        self.heard: dict[int, bytes] = {}

    async def say(self, channel: int, data: bytes) -> None:
        await self.socket.send_bytes(bytes((channel,)) + data)

    async def close(self, channel: int) -> None:
        await self.socket.send_bytes(bytes((255, channel)))

    async def until(self, channel: int, text: bytes) -> None:
        async with asyncio.timeout(60):
            while text not in self.heard.get(channel, b""):
                assert await self._hear(), self.heard

    async def status(self) -> dict[str, Any]:
        """How the command ended, once everything was heard."""
        async with asyncio.timeout(60):
            while await self._hear():
                pass
        return dict(json.loads(self.heard[ERROR]))

    async def _hear(self) -> bool:
        message = await self.socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            assert self.socket.close_code == 1000
            return False
        channel = message.data[0]
        self.heard[channel] = self.heard.get(channel, b"") + message.data[1:]
        return True


@asynccontextmanager
async def calling(
    world: World, *command: str, options: str = "output=1&error=1", version: int = 5
) -> AsyncIterator[Exec]:
    query = urlencode([("command", part) for part in command])
    url = f"{world.url}/exec/default/web/main?{options}&{query}"
    protocol = f"v{version}.channel.k8s.io"
    async with world.caller().ws_connect(url, protocols=[protocol]) as socket:
        assert socket.protocol == protocol
        yield Exec(socket)


@pytest.mark.parametrize("version", [4, 5])
async def test_a_command_is_heard_on_both_streams_and_ends_well(web: World, version: int) -> None:
    async with calling(web, "sh", "-c", "echo out; echo err >&2", version=version) as call:
        assert await call.status() == {"metadata": {}, "status": "Success"}
    assert (call.heard[STDOUT], call.heard[STDERR]) == (b"out\n", b"err\n")


async def test_an_exit_code_is_told_as_upstream_tells_it(web: World) -> None:
    async with calling(web, "sh", "-c", "exit 3") as call:
        status = await call.status()
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}
    assert status["message"] == "command terminated with non-zero exit code: exit status 3"


async def test_stdin_that_is_closed_ends_a_command_that_reads_it(web: World) -> None:
    async with calling(web, "cat", options="input=1&output=1") as call:
        await call.say(STDIN, b"hello")
        await call.until(STDOUT, b"hello")
        await call.close(STDIN)
        assert (await call.status())["status"] == "Success"


async def test_a_terminal_has_the_size_that_it_is_given(web: World) -> None:
    async with calling(web, "sh", options="input=1&output=1&tty=1") as call:
        # In two parts, as a stream may be cut anywhere.
        await call.say(RESIZE, b'{"Width":123,')
        await call.say(RESIZE, b'"Height":45}')
        await call.say(STDIN, b"stty size; exit 7\n")
        status = await call.status()
    assert b"45 123" in call.heard[STDOUT]
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


async def test_a_command_that_is_not_there_is_told_as_a_failure(web: World) -> None:
    async with calling(web, "/there/is/no/such/program") as call:
        status = await call.status()
    assert status["reason"] == "InternalError"
    assert "error executing command in container: cannot run '/there/is/no/such/program'" in status["message"]


async def test_a_container_that_ends_ends_its_command(web: World) -> None:
    async with calling(web, "sh", "-c", "echo here; sleep 100") as call:
        await call.until(STDOUT, b"here")
        uid = web.pods.known["default", "web"]["metadata"]["uid"]
        for sandbox in await web.runtime.list_sandboxes(pod_uid=uid):
            await web.runtime.stop_sandbox(sandbox.id)
        status = await call.status()
    assert status["status"] == "Failure"


async def test_a_caller_that_goes_away_takes_its_command_along(web: World) -> None:
    mark = web.folder / "mark"
    async with calling(web, "sh", "-c", f"echo $$ > {mark}; echo here; exec sleep 100") as call:
        await call.until(STDOUT, b"here")
    pid = int(mark.read_text())
    await until(lambda: not _runs(pid))


async def test_a_lot_of_output_comes_whole(web: World) -> None:
    async with calling(web, "sh", "-c", "head -c 5000000 /dev/zero") as call:
        assert (await call.status())["status"] == "Success"
    assert len(call.heard[STDOUT]) == 5_000_000


@pytest.mark.parametrize(
    ("path", "code", "line"),
    [
        ("/exec/default/none/main?output=1&command=true", 404, "pod does not exist"),
        ("/exec/default/web/none?output=1&command=true", 404, 'container not found ("none")'),
        ("/exec/default/web/another-uid/main?output=1&command=true", 404, "pod not found"),
        ("/exec/default/web/main?command=true", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/web/main?output=1", 400, "you must specify at least one command for the container"),
        ("/exec/default/web/main?output=1&command=true", 400, "Upgrade request required"),
        (
            "/attach/default/web/main?output=1",
            501,
            "attach is not offered by this node: only logs and exec are",
        ),
        ("/portForward/default/web", 501, "portForward is not offered by this node: only logs and exec are"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(web: World, path: str, code: int, line: str) -> None:
    assert await web.get(path) == (code, line)


async def test_a_message_of_more_than_4_megabytes_ends_the_connection(web: World) -> None:
    async with calling(web, "cat", options="input=1&output=1") as cat:
        await cat.socket.send_bytes(b"\0" + b"x" * (4 << 20))
        while (last := await cat.socket.receive()).type is aiohttp.WSMsgType.BINARY:
            pass
        assert (last.type, last.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)


async def test_an_unknown_protocol_is_refused(web: World) -> None:
    url = f"{web.url}/exec/default/web/main?output=1&command=true"
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await web.caller().ws_connect(url, protocols=["v1.channel.k8s.io"])
    assert refused.value.status == 400


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
