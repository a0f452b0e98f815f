"""`kubectl attach`, `port-forward`, `debug`, `run -i` and `get --raw …/proxy/…` on `podlife up`, with both runtimes,
and the same from Python."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podlife.client import PODS, Client, load
from podlife.client.config import Flags
from podlife.errors import ApiError
from tests.kit.real_parts import free_port, part
from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until, until_blocking
from tests.real.conftest import Kubectl
from tests.real.containerd.conftest import require_containerd
from tests.real.containerd.daemon import IMAGE, containerd_daemon

SECONDS = 120.0
ECHO = 'while read line; do echo "heard $line"; done'


@dataclass
class World:
    up: UpProcess
    kubectl: Kubectl
    runtime: str
    # Of the server in the pod `web`; a pod of the process runtime has those of the machine.
    port: int
    folder: Path

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(part("kubectl")), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=os.environ | {"KUBECONFIG": str(self.up.kubeconfig), "HOME": str(self.folder)} | environment,
        )

    @contextmanager
    def started(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [str(part("kubectl")), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"KUBECONFIG": str(self.up.kubeconfig), "HOME": str(self.folder)} | environment,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def client(self) -> Client:
        return Client.connect(load(Flags(kubeconfig=str(self.up.kubeconfig))))

    def serve(self) -> list[str]:
        """A command that serves a page."""
        if self.runtime == "containerd":
            page = "mkdir -p /www; echo '<a href=\"/rewriteme\">test</a>' > /www/index.html"
            return ["sh", "-c", f"{page}; exec httpd -f -p {self.port} -h /www"]
        www = self.folder / "www"
        www.mkdir()
        (www / "index.html").write_text('<a href="/rewriteme">test</a>\n')
        return [sys.executable, "-m", "http.server", str(self.port), "-b", "127.0.0.1", "-d", str(www)]

    async def create(self, client: Client, name: str, command: list[str], **fields: Any) -> None:
        container = {"name": "main", "image": IMAGE, "command": command, **fields}
        metadata = {"name": name, "labels": {"app": name}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await client.create(PODS, pod, "default")
        assert self.run("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=100s").returncode == 0


@pytest.fixture(scope="module", params=["process", "containerd"])
def world(
    request: pytest.FixtureRequest, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp(request.param)
    flags = ["--nodes", "1", "--runtime", request.param, "--no-ui"]
    if request.param == "process":
        with running_up(folder, *flags) as up:
            yield _prepared(World(up, kubectl, request.param, free_port(), folder))
        return
    require_containerd()
    with (
        containerd_daemon() as daemon,
        running_up(folder, *flags, "--containerd-socket", str(daemon.socket)) as up,
    ):
        yield _prepared(World(up, kubectl, request.param, 8080, folder))


def _prepared(world: World) -> World:
    """With a pod and a service that serve a page."""

    async def prepare() -> None:
        async with world.client() as client:
            ports = [{"containerPort": world.port, "name": "http"}]
            await world.create(client, "web", world.serve(), ports=ports)

    asyncio.run(prepare())
    world.run("expose", "pod", "web", "--port=80", f"--target-port={world.port}", "--name=web")
    return world


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_a_port_is_forwarded_and_one_that_nobody_serves_is_told(world: World, websockets: str) -> None:
    local, nobody = free_port(), free_port()
    environment = {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    with world.started(
        "port-forward", "pod/web", f"{local}:{world.port}", f":{nobody}", **environment
    ) as one:
        assert one.stdout is not None
        lines = [one.stdout.readline() for _ in range(4)]
        assert f"Forwarding from 127.0.0.1:{local} -> {world.port}\n" in lines
        until_blocking(lambda: "rewriteme" in _get(local))
        [other] = {
            line.split(":")[-1].split(" ")[0] for line in lines if f"-> {nobody}" in line and "[" not in line
        }
        assert _get(int(other)) == ""
        assert "connection refused" in one.stdout.read()


def _get(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        heard = b""
        try:
            while piece := connection.recv(65536):
                heard += piece
        except ConnectionError:
            pass
    return heard.decode()


def test_a_page_is_had_through_the_proxy_of_a_pod_a_service_and_a_node(world: World) -> None:
    places = ["pods/web", f"pods/http:web:{world.port}"]
    if world.runtime == "process":
        # The network of pods of the daemon of this test is not that of this machine.
        places += ["services/web:80"]
        for place in places:
            path = f"/api/v1/namespaces/default/{place}/proxy/"
            until_blocking(lambda path=path: "rewriteme" in world.run("get", "--raw", path).stdout)
            assert world.run("get", "--raw", path).stdout == f'<a href="{path}rewriteme">test</a>\n'
    assert world.run("get", "--raw", "/api/v1/nodes/node-0/proxy/healthz").stdout == "ok"
    refused = world.run("get", "--raw", "/api/v1/namespaces/default/services/none/proxy/")
    assert 'services "none" not found' in refused.stderr


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_a_user_attaches_to_a_container_and_runs_one_with_input(world: World, websockets: str) -> None:
    environment = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    name = f"run-{websockets}"
    done = world.run(
        *("run", name, "-i", "--rm", "--restart=Never", f"--image={IMAGE}", "--command", "--"),
        *("sh", "-c", "cat; echo end"),
        stdin="typed\n",
        **environment,
    )
    assert "typed\nend\n" in done.stdout, done
    world.run(
        "run",
        f"{name}-talk",
        "--stdin",
        f"--image={IMAGE}",
        "--attach=false",
        "--command",
        "--",
        "sh",
        "-c",
        ECHO,
    )
    world.run("wait", "--for=condition=Ready", f"pod/{name}-talk", "--timeout=100s")
    with world.started("attach", "-i", f"{name}-talk", **environment) as attached:
        assert attached.stdin is not None
        assert attached.stdout is not None
        attached.stdin.write("hello\n")
        attached.stdin.flush()
        while "heard hello" not in (line := attached.stdout.readline()):
            assert line
    world.run("delete", "pod", f"{name}-talk", "--grace-period=0", "--force")


def test_a_user_debugs_a_pod_with_an_ephemeral_container(world: World) -> None:
    debug = ("debug", "-i", "web", f"--image={IMAGE}", "--container=dbg", "--target=main", "--", "sh")
    # The end of the input would end the session: containerd detaches the output then, too.
    with world.started(*debug) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write("echo in debug\n")
        session.stdin.flush()
        while (line := session.stdout.readline()) != "in debug\n":
            assert line
        session.stdin.write("exit\n")
        session.stdin.flush()
        session.wait(SECONDS)
    state = "{.status.ephemeralContainerStatuses[0].state.terminated.exitCode}"
    until_blocking(lambda: world.run("get", "pod", "web", "-o", f"jsonpath={state}").stdout == "0")


@pytest.mark.skipif(shutil.which("script") is None, reason="script(1), which makes a terminal, is not there")
def test_a_user_has_a_terminal_of_the_right_size(world: World) -> None:
    script = "until stty size | grep '33 99'; do sleep 0.1; done; tty"
    for command in (
        ("exec", "-it", "web", "-c", "main", "--", "sh", "-c", script),
        (
            "run",
            "term",
            "-it",
            "--rm",
            "--restart=Never",
            f"--image={IMAGE}",
            "--command",
            "--",
            "sh",
            "-c",
            script,
        ),
    ):
        shell = shlex.join([str(part("kubectl")), *command])
        done = subprocess.run(
            ["script", "-qec", f"stty rows 33 cols 99; {shell}", "/dev/null"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            env=os.environ | {"KUBECONFIG": str(world.up.kubeconfig), "HOME": str(world.folder)},
        )
        assert b"33 99" in done.stdout, done
        assert b"/dev/pts/" in done.stdout


async def test_python_has_the_same(world: World) -> None:
    async with asyncio.timeout(SECONDS), world.client() as client:
        async with client.exec("web", "default", ["cat"], container="main", stdin=True) as session:
            await session.write(b"x" * 1_000_000)
            await session.close_stdin()
            assert len(await session.stdout.read()) == 1_000_000
            assert await session.wait() == 0
        failing = ["sh", "-c", "echo err >&2; exit 3"]
        async with client.exec("web", "default", failing, container="main") as session:
            assert await session.stderr.read() == b"err\n"
            assert await session.wait() == 3
        async with client.port_forward("web", "default", world.port) as connection:
            await connection.write(b"GET / HTTP/1.0\r\n\r\n")
            assert b"rewriteme" in await connection.reader.read()
        nobody = free_port()
        async with client.port_forward("web", "default", nobody) as connection:
            assert await connection.reader.read() == b""
            assert "refused" in await connection.failure()
        with pytest.raises(ApiError) as refused:
            async with client.attach("none", "default"):
                pass
        assert refused.value.code == 404
        await world.create(client, "talk", ["sh", "-c", ECHO], stdin=True)
        async with client.attach("talk", "default", stdin=True) as session:
            await session.write(b"hello\n")
            assert await session.stdout.readline() == b"heard hello\n"


async def test_a_forward_to_a_pod_that_ends_is_told(world: World) -> None:
    async with asyncio.timeout(SECONDS), world.client() as client:
        await world.create(client, "brief", ["sleep", "1000"])
        assert world.run("delete", "pod", "brief", "--grace-period=0", "--force").returncode == 0

        async def is_refused() -> bool:
            try:
                async with client.port_forward("brief", "default", world.port):
                    return False
            except ApiError as error:
                return error.code in (404, 500)

        await until(is_refused)
