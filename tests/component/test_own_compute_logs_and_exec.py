"""Logs and exec on the node of `docs/own-compute.md`, asked for as kubectl does, on the embedded server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.conformance.runtime.custom_machine import own_compute
from tests.kit.own_compute_process import POD, running_page
from tests.kit.server_process import ServerProcess, running_server

SECONDS = 120
HELLO = "/api/v1/namespaces/default/pods/hello"


async def test_the_page_has_logs_and_exec_and_says_that_it_has_joined(tmp_path: Path) -> None:
    with running_server(tmp_path / "server") as server:
        kubeconfig = tmp_path / "my-node.kubeconfig"
        made = server.run("kubeconfig", "--node", "my-node", "-o", str(kubeconfig))
        assert made.returncode == 0, made.stderr
        with running_page(tmp_path, kubeconfig):
            await use(server)


async def use(server: ServerProcess) -> None:
    async with server.session(seconds=SECONDS) as session, asyncio.timeout(SECONDS):
        pods = HELLO.rpartition("/")[0]
        async with session.post(pods, json=yaml.safe_load(POD)) as answer:
            assert answer.status == 201, await answer.text()
        while "hello node\n" not in (shown := await get(session, f"{HELLO}/log")):
            await asyncio.sleep(0.1)
        assert set(shown.split("\n")) <= {"hello node", ""}
        # Once more until the server trusts the certificate that it has signed for the node.
        while "done\n" not in await execute(session, "echo", "done"):
            await asyncio.sleep(0.1)
        async with session.delete(HELLO) as answer:
            assert answer.status == 200
        while "NotFound" not in await get(session, HELLO):
            await asyncio.sleep(0.1)


async def get(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path) as answer:
        text = await answer.text()
        return text if answer.status == 200 or path == HELLO else ""


async def execute(session: aiohttp.ClientSession, *command: str) -> str:
    query: Any = [("command", each) for each in command] + [("stdout", "true")]
    out = b""
    try:
        async with session.ws_connect(
            f"{HELLO}/exec", params=query, protocols=("v5.channel.k8s.io",)
        ) as channel:
            async for message in channel:
                # The first byte says of what: 1 is standard output.
                if message.data[:1] == b"\x01":
                    out += message.data[1:]
    except aiohttp.WSServerHandshakeError:
        return ""
    return out.decode()


async def test_a_command_of_the_page_does_not_read_what_its_agent_is_given() -> None:
    compute = own_compute(whole=True).Coroutines({})
    kept, (reading, writing) = os.dup(0), os.pipe()
    os.write(writing, b"for the agent")
    os.dup2(reading, 0)
    try:
        async with asyncio.timeout(30):
            # With the other end still open, a command that inherits it would wait for ever.
            result = await compute.exec("any", ["cat"])
        assert (result.exit_code, result.stdout) == (0, b"")
        assert os.read(reading, 100) == b"for the agent"
    finally:
        os.dup2(kept, 0)
        for each in (kept, reading, writing):
            os.close(each)
