"""`kubectl logs`, `exec`, `attach` and `port-forward` through an API server, into containers that really run.

Three ways lead there: a kube-apiserver passes the WebSocket on to a node that declares it, and speaks SPDY to one that
does not; our own server always passes WebSockets on, to nodes whose certificate it has signed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podlife.client import NODES, PODS, Client, DeleteOptions, load
from podlife.client.config import Flags
from podlife.clock import SystemClock
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.server import (
    DECLARED_FEATURES,
    ApiAccess,
    CertificateSettings,
    ClusterSigner,
    KubeletServer,
    ServedNode,
    ServerSettings,
)
from tests.component.kubelet_server.kit import Pods
from tests.kit.real_parts import Server, part
from tests.real.conftest import require

NAME = "node-a"
# How long anything may take that is waited for.
SECONDS = 120.0


@dataclass
class World:
    """A server, a node of it whose agent is just the endpoint, and a user with kubectl."""

    server: Server
    client: Client
    pods: Pods
    endpoint: KubeletServer
    folder: Path
    told: dict[str, str] = field(default_factory=dict)

    async def run(self, name: str, script: str, *, stdin: bool = False) -> dict[str, Any]:
        """A pod on the node that runs a script; the server and the agent show the same of it."""
        pod = await self.pods.run(name, script, stdin=stdin)
        pod["spec"]["containers"][0]["stdin"] = stdin
        await self.tell(pod)
        return pod

    async def tell(self, pod: dict[str, Any]) -> None:
        """Let the server know of the pod, too."""
        name = pod["metadata"]["name"]
        bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod["spec"]}
        made: dict[str, Any] = await self.client.create(PODS, bare, "default")
        self.told[name] = made["metadata"]["uid"]

    async def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        process = await self.start("kubectl", *arguments)
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate(stdin.encode())
        return subprocess.CompletedProcess(arguments, process.returncode or 0, out.decode(), err.decode())

    async def start(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.server.kubeconfig),
        }
        path = str(part("kubectl")) if program == "kubectl" else program
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            path, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )


@asynccontextmanager
async def a_node(server: Server, folder: Path, features: tuple[str, ...]) -> AsyncIterator[World]:
    clock = SystemClock()
    connection = load(Flags(kubeconfig=str(server.kubeconfig)))
    as_node = load(Flags(kubeconfig=str(server.kubeconfig_for(NAME))))
    async with (
        Client.connect(connection) as client,
        Client.connect(as_node) as agent,
        ProcessRuntime(ProcessSettings(folder / "runtime"), clock) as runtime,
        asyncio.TaskGroup() as group,
    ):
        pods = Pods(runtime, folder / "logs", NAME)
        authority = server.ca_file.read_bytes()
        certificate = CertificateSettings(NAME, folder / "pki", ("127.0.0.1",), client_authority=authority)
        endpoint = KubeletServer(
            ServedNode(NAME, pods, runtime, clock),
            ApiAccess(agent, NAME),
            ServerSettings(certificate, port=0),
            signing=ClusterSigner(agent),
            clock=clock,
        )
        serving = group.create_task(endpoint.run())
        async with asyncio.timeout(SECONDS):
            await endpoint.ready.wait()
        await register(client, endpoint.port, features)
        world = World(server, client, pods, endpoint, folder)
        try:
            yield world
        finally:
            for name, uid in world.told.items():
                await client.delete(
                    PODS, name, "default", options=DeleteOptions(grace_period_seconds=0, uid=uid)
                )
            await client.delete(NODES, NAME)
            serving.cancel()
            for sandbox in await runtime.list_sandboxes():
                await runtime.remove_sandbox(sandbox.id)


async def register(client: Client, port: int, features: tuple[str, ...]) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": list(features),
    }
    await client.create(NODES, node)
    await client.patch(NODES, NAME, {"status": status}, subresource="status")


@pytest.fixture(params=["kube over WebSocket", "kube over SPDY", "podlife"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    require("kubectl")
    is_kube = request.param.startswith("kube")
    server: Server = request.getfixturevalue("kube" if is_kube else "podlife_server")
    features = () if "SPDY" in request.param else DECLARED_FEATURES
    async with a_node(server, tmp_path, features) as made:
        yield made


async def test_a_user_reads_logs(world: World) -> None:
    name = "logs"
    go = world.folder / "go"
    os.mkfifo(go)
    pod = world.pods.add(name, "main")
    first = await world.pods.start(pod, "main", "echo first")
    await world.pods.ended(first)
    second = await world.pods.start(pod, "main", f"echo one; echo two; read x < {go}; echo three", attempt=1)
    last = {"terminated": {"exitCode": 0, "containerID": f"process://{first}"}}
    world.pods.show(pod, "main", {"running": {}}, second, last)
    await world.tell(pod)

    async with asyncio.timeout(SECONDS):
        while "two" not in (shown := (await world.kubectl("logs", name)).stdout):
            assert "one\ntwo\n".startswith(shown)
    assert shown == "one\ntwo\n"
    assert (await world.kubectl("logs", name, "--tail=1")).stdout == "two\n"
    assert (await world.kubectl("logs", name, "--previous")).stdout == "first\n"
    assert (await world.kubectl("logs", name, "--since=1h", "--timestamps")).stdout.count("Z ") == 2

    following = await world.start("kubectl", "logs", "--follow", name)
    assert following.stdout is not None
    async with asyncio.timeout(SECONDS):
        assert await following.stdout.readline() == b"one\n"
        await asyncio.to_thread(go.write_text, "x\n")
        rest, _ = await following.communicate()
    assert (rest, following.returncode) == (b"two\nthree\n", 0)

    refused = await world.kubectl("logs", name, "-c", "other")
    assert "container other is not valid for pod logs" in refused.stderr


async def test_a_user_is_told_why_there_is_no_log_yet(world: World) -> None:
    pod = world.pods.add("waiting", "main")
    world.pods.show(pod, "main", {"waiting": {"reason": "ContainerCreating"}}, "")
    await world.tell(pod)
    refused = await world.kubectl("logs", "waiting")
    assert 'container "main" in pod "waiting" is waiting to start: ContainerCreating' in refused.stderr
    assert refused.returncode == 1


async def test_a_user_runs_commands(world: World) -> None:
    await world.run("exec", "sleep 1000")
    plain = await world.kubectl("exec", "exec", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (plain.stdout, plain.returncode) == ("out\n", 3)
    assert plain.stderr.startswith("err\n")
    assert "command terminated with exit code 3" in plain.stderr

    text = "x" * 200_000 + "\n"
    copied = await world.kubectl("exec", "-i", "exec", "--", "cat", stdin=text)
    assert (copied.stdout, copied.returncode, copied.stderr) == (text, 0, "")

    missing = await world.kubectl("exec", "exec", "--", "/there/is/no/such/program")
    assert "cannot run '/there/is/no/such/program' in the container" in missing.stderr
    assert missing.returncode != 0


async def test_a_kube_apiserver_passes_the_websocket_on_to_a_node_that_declares_it(
    kube: Server, tmp_path: Path
) -> None:
    require("kubectl")
    for features, way in ((DECLARED_FEATURES, "proxied_to_kubelet"), ((), "translated_at_apiserver")):
        async with a_node(kube, tmp_path / way, features) as world:
            await world.run("exec", "sleep 1000")
            before = await passed_on(world.client, way)
            assert (await world.kubectl("exec", "exec", "--", "true")).returncode == 0
            # Counted when all is over on the server's side, too.
            async with asyncio.timeout(SECONDS):
                while await passed_on(world.client, way) == before:
                    await asyncio.sleep(0.05)
            assert await passed_on(world.client, way) == before + 1


async def passed_on(client: Client, way: str) -> float:
    """How many commands a kube-apiserver has brought to a node this way."""
    lines = (
        (await client.request("GET", "/metrics", headers={"Accept": "text/plain"})).body.decode().splitlines()
    )
    counts = [line for line in lines if "websocket_streaming_requests_total{" in line and way in line]
    return sum(float(line.rpartition(" ")[2]) for line in counts if 'subresource="exec"' in line)


async def test_a_user_is_told_why_a_command_cannot_run(world: World) -> None:
    pod = world.pods.add("waiting", "main")
    world.pods.show(pod, "main", {"waiting": {"reason": "ContainerCreating"}}, "")
    await world.tell(pod)
    refused = await world.kubectl("exec", "waiting", "--", "true")
    assert refused.returncode == 1
    assert 'container not found ("main")' in refused.stderr


async def test_a_user_attaches_to_a_container(world: World) -> None:
    await world.run("attach", 'while read line; do echo "heard $line"; done', stdin=True)
    attached = await world.start("kubectl", "attach", "-i", "attach")
    assert attached.stdin is not None
    assert attached.stdout is not None
    async with asyncio.timeout(SECONDS):
        attached.stdin.write(b"hello\n")
        assert await attached.stdout.readline() == b"heard hello\n"
    attached.kill()
    await attached.communicate()


async def test_a_user_forwards_a_port(world: World) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    await world.run("forward", "sleep 1000")
    await world.client.patch(
        PODS, "forward", {"status": {"phase": "Running"}}, "default", subresource="status"
    )
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(SECONDS), server:
        forwarding = await world.start("kubectl", "port-forward", "forward", f":{port}")
        assert forwarding.stdout is not None
        line = (await forwarding.stdout.readline()).decode()
        local = int(line.partition("127.0.0.1:")[2].partition(" ")[0])
        for word in (b"one\n", b"two\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(word)
            assert await reader.read() == word.upper()
            writer.close()
        forwarding.kill()
        await forwarding.communicate()


@pytest.mark.skipif(shutil.which("script") is None, reason="script(1), which makes a terminal, is not there")
async def test_a_user_has_a_terminal(world: World) -> None:
    await world.run("terminal", "sleep 1000")
    command = shlex.join([str(part("kubectl")), "exec", "-it", "terminal", "--", "sh"])
    shell = await world.start("script", "-qec", f"stty rows 33 cols 99; {command}", "/dev/null")
    assert shell.stdin is not None
    assert shell.stdout is not None
    async with asyncio.timeout(SECONDS):
        # The size comes beside what is typed, and may come after it.
        shell.stdin.write(b"until stty size | grep -v '^0 0'; do sleep 0.1; done; tty; exit 4\n")
        heard = b""
        while b"33 99" not in heard:
            piece = await shell.stdout.read(4096)
            assert piece, heard
            heard += piece
        rest, _ = await shell.communicate()
    assert b"/dev/pts/" in heard + rest
    assert shell.returncode == 4
