"""Attaching to the main process of a container that really runs, over a WebSocket and over SPDY/3.1."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from podlife.kubelet.runtimes.process.supervisor import attachments
from tests.component.kubelet_server.callers import Caller, over_spdy, over_websocket
from tests.component.kubelet_server.kit import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

Calling = Callable[..., AbstractAsyncContextManager[Caller]]
# Says what it reads, until it reads "end".
ECHO = 'while read line; do echo "heard $line"; [ "$line" = end ] && exit 7; done; echo closed'


@pytest.mark.parametrize("calling", [over_websocket, over_spdy])
async def test_two_callers_hear_the_process_and_one_talks_to_it(web: World, calling: Calling) -> None:
    await web.pods.run("talk", f"while sleep 0.05; do echo tick; done & {ECHO}", stdin=True)
    async with (
        calling(web, attach_to="talk", options="input=1&output=1&error=1") as talker,
        calling(web, attach_to="talk") as listener,
    ):
        # Only what is said from now on is heard.
        await listener.until("stdout", b"tick")
        await talker.say("stdin", b"hello\n")
        await talker.until("stdout", b"heard hello\n")
        await listener.until("stdout", b"heard hello\n")
        await talker.say("stdin", b"end\n")
        # An attached session succeeds whatever the exit code of the process is.
        assert (await talker.status())["status"] == "Success"
        assert (await listener.status())["status"] == "Success"
    assert talker.heard["stdout"].replace(b"tick\n", b"") == b"heard hello\nheard end\n"


async def test_the_input_stays_open_for_the_next_session_unless_it_is_for_one(web: World) -> None:
    for pod, is_once in (("again", False), ("once", True)):
        await web.pods.run(pod, ECHO, stdin=True, stdin_once=is_once)
        async with over_websocket(web, attach_to=pod, options="input=1&output=1") as first:
            await first.say("stdin", b"one\n")
            await first.until("stdout", b"heard one\n")
            if is_once:
                await first.close("stdin")
                await first.until("stdout", b"closed\n")
    async with over_websocket(web, attach_to="again", options="input=1&output=1") as second:
        await second.say("stdin", b"two\n")
        await second.until("stdout", b"heard two\n")


async def test_a_session_that_breaks_off_leaves_the_process_alone(web: World) -> None:
    await web.pods.run("left", ECHO, stdin=True)
    for word in (b"one", b"two"):
        async with over_websocket(web, attach_to="left", options="input=1&output=1") as caller:
            await caller.say("stdin", word + b"\n")
            await caller.until("stdout", b"heard " + word)


async def test_a_terminal_is_resized_and_typed_into(web: World) -> None:
    await web.pods.run("tty", "read x; stty size; exit 3", stdin=True, tty=True)
    async with over_websocket(web, attach_to="tty", options="input=1&output=1&tty=1") as caller:
        await caller.say("resize", b'{"Width":123,"Height":45}')
        await caller.say("stdin", b"go\n")
        assert (await caller.status())["status"] == "Success"
    assert b"45 123" in caller.heard["stdout"]


async def test_a_container_without_input_ignores_what_is_sent(web: World) -> None:
    await web.pods.run("deaf", "sleep 0.2; cat; echo done")
    async with over_websocket(web, attach_to="deaf", options="input=1&output=1") as caller:
        await caller.say("stdin", b"x" * 100_000)
        assert (await caller.status())["status"] == "Success"
    assert caller.heard["stdout"] == b"done\n"


async def test_a_container_that_has_ended_cannot_be_attached_to(web: World) -> None:
    pod = await web.pods.run("ended", "exit 0")
    started = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("process://")
    await web.pods.ended(started)
    # The node's own list may be older than the end.
    async with over_websocket(web, attach_to="ended") as caller:
        status = await caller.status()
    assert "error attaching to container: container 'main' does not run: it is Exited" in status["message"]
    web.pods.show(pod, "main", {"terminated": {}}, started)
    path = "/attach/default/ended/main?output=1"
    assert await web.get(path) == (404, 'container not found ("main")')


async def test_a_caller_that_never_reads_is_dropped_and_the_process_goes_on(web: World) -> None:
    go = web.folder / "attach-go"
    done = web.folder / "attach-done"
    script = f"until [ -e {go} ]; do sleep 0.05; done; head -c 8000000 /dev/zero; echo > {done}; sleep 1000"
    await web.pods.run("loud", script)
    async with over_websocket(web, attach_to="loud") as deaf:
        assert deaf.socket is not None
        go.touch()
        async with asyncio.timeout(60 + attachments._STALL_SECONDS):
            while not done.exists():
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "protocol", ["channel.k8s.io", "base64.channel.k8s.io", "v4.base64.channel.k8s.io", ""]
)
async def test_older_protocols_of_a_websocket_are_spoken_too(web: World, protocol: str) -> None:
    url = f"{web.url}/exec/default/web/main?output=1&command=sh&command=-c&command=echo+hi%3B+exit+3"
    heard: dict[int, bytes] = {}
    async with web.caller().ws_connect(url, protocols=[protocol] if protocol else []) as socket:
        assert (socket.protocol or "") == protocol
        async for message in socket:
            if "base64" in protocol:
                channel, data = int(message.data[0]), base64.b64decode(message.data[1:])
            else:
                channel, data = message.data[0], message.data[1:]
            heard[channel] = heard.get(channel, b"") + data
    assert heard[1] == b"hi\n"
    plain = b"command terminated with non-zero exit code: exit status 3"
    assert (heard[3] == plain) if "v4" not in protocol else (plain in heard[3] and heard[3][:1] == b"{")
