"""The node of `docs/own-compute.md`, taken from the page as it stands, on the embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from podlife.aio import cancel_and_wait
from podlife.client import NODES, PODS, Client
from podlife.errors import NotFoundError
from podlife.testing import LoopClock, virtual_time
from tests.conformance.runtime.custom_machine import own_compute
from tests.kit import own_compute_process
from tests.kit.embedded import connect, start
from tests.kit.server_process import ServerProcess, running_server
from tests.kit.wait import until

Object = dict[str, Any]
MODULE = own_compute(whole=True)
POD = yaml.safe_load(own_compute_process.POD)


@asynccontextmanager
async def joined(client: Client, folder: Path, compute: Any) -> AsyncIterator[None]:
    agent = asyncio.get_running_loop().create_task(MODULE.join(client, folder, compute, LoopClock()))
    try:
        yield
        assert not agent.done(), agent
    finally:
        await cancel_and_wait(agent)


async def until_pod(client: Client, holds: Callable[[Object], bool], name: str = "hello") -> Object:
    async def found() -> Object | None:
        pod: Object = await client.get(PODS, name, "default")
        return pod if holds(pod) else None

    shown: Object = await until(found, seconds=600)
    return shown


def is_ready(pod: Object) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def shown(pod: Object) -> Object:
    first: Object = pod["status"]["containerStatuses"][0]
    return first


@virtual_time
async def test_a_pod_lives_on_it_through_a_restart_of_the_agent_and_ends_within_its_grace(
    tmp_path: Path,
) -> None:
    compute = MODULE.Coroutines({"greet": MODULE.greet})
    async with connect(await start()) as client:
        await client.create(PODS, POD, "default")
        async with joined(client, tmp_path, compute):
            before = await until_pod(client, is_ready)
            node = await client.get(NODES, "my-node")
            assert node["status"]["nodeInfo"]["containerRuntimeVersion"] == "coroutines://1"
            assert node["status"]["capacity"]["cpu"] == "8"
        await asyncio.sleep(10)
        async with joined(client, tmp_path, compute):
            await asyncio.sleep(30)
            after = await client.get(PODS, "hello", "default")
            assert shown(after)["containerID"] == shown(before)["containerID"]
            assert shown(after)["restartCount"] == 0
            assert is_ready(after)
            began = asyncio.get_running_loop().time()
            await delete(client, "hello")
            assert asyncio.get_running_loop().time() - began < 5
        [log] = tmp_path.rglob("0.log")
        assert "stdout F hello node" in log.read_text()


async def delete(client: Client, name: str) -> None:
    """Returns when it is gone."""
    await client.delete(PODS, name, "default")
    with contextlib.suppress(NotFoundError):
        await until_pod(client, lambda _: False, name)


@virtual_time
async def test_what_ends_is_started_again_by_the_rules_and_what_is_not_there_says_so(tmp_path: Path) -> None:
    async def crash(work: Any, stop: asyncio.Event) -> int:
        await asyncio.sleep(1)
        raise ValueError("too hot")

    compute = MODULE.Coroutines({"greet": crash})
    async with connect(await start()) as client:
        one = {**POD["spec"]["containers"][0], "args": []}
        for name, container in {"hello": one, "other": {**one, "command": ["nothing"]}}.items():
            spec = {**POD["spec"], "containers": [container]}
            await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")
        async with joined(client, tmp_path, compute):
            crashed = await until_pod(client, lambda each: shown_count(each) >= 3)
            ended = shown(crashed)["lastState"]["terminated"]
            assert (ended["exitCode"], ended["message"]) == (1, "ValueError('too hot')")
            missing = await until_pod(client, lambda each: shown_count(each) >= 1, "other")
            assert "there is no such program" in str(missing["status"]["containerStatuses"])
            await delete(client, "hello")
            await delete(client, "other")


def shown_count(pod: Object) -> int:
    statuses = pod["status"].get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))


# Logs and exec, asked for as kubectl does.

SECONDS = 120
HELLO = "/api/v1/namespaces/default/pods/hello"


async def test_the_page_has_logs_and_exec_and_says_that_it_has_joined(tmp_path: Path) -> None:
    with running_server(tmp_path / "server") as server:
        kubeconfig = tmp_path / "my-node.kubeconfig"
        made = server.run("kubeconfig", "--node", "my-node", "-o", str(kubeconfig))
        assert made.returncode == 0, made.stderr
        with own_compute_process.running_page(tmp_path, kubeconfig):
            await use(server)


async def use(server: ServerProcess) -> None:
    async with server.session(seconds=SECONDS) as session, asyncio.timeout(SECONDS):
        pods = HELLO.rpartition("/")[0]
        async with session.post(pods, json=POD) as answer:
            assert answer.status == 201, await answer.text()
        while "hello node\n" not in (text := await get(session, f"{HELLO}/log")):
            await asyncio.sleep(0.1)
        assert set(text.split("\n")) <= {"hello node", ""}
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
    compute = MODULE.Coroutines({})
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
