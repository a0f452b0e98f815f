"""README.md and docs/client.md, word for word: what they tell people to type does what they say, on a server in a
process of its own.

Three things are changed on the way: a free port instead of 6443, loopback instead of every address, and a folder
of the test's for the reader's home and for DIR and FILE.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.real_parts import free_port

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLIENT = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
# Less than pytest's own timeout, which says nothing of what was written until then.
SECONDS = 240.0

Process = subprocess.Popen[str]


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def commands(program: str) -> list[str]:
    """Every line of a shell block that runs the program, without its comment."""
    lines = [line.partition("#")[0].strip() for block in blocks("") for line in block.splitlines()]
    return [line for line in lines if f"{line} ".startswith(f"{program} ")]


def is_server(command: str) -> bool:
    words = command.split()
    return words[1] == "apiserver" and all(word.startswith("--") for word in words[2:3])


SERVERS = [command for command in commands("podlife") if is_server(command)]
OTHERS = [command for command in commands("podlife apiserver") if not is_server(command)]
COLLECTOR = commands("podlife gc")
CONTROLLERS = commands("podlife controllers")


class Reader:
    """Somebody with an empty home who types what they read."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.kubeconfig = home / ".local" / "share" / "podlife" / "admin.kubeconfig"
        plain = {
            name: value for name, value in os.environ.items() if name not in ("XDG_DATA_HOME", "KUBECONFIG")
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = plain | {"HOME": str(home), "PATH": path, "PYTHONUNBUFFERED": "1"}

    def arguments(self, command: str, **places: Path) -> list[str]:
        places.setdefault("DIR", self.home / "elsewhere")
        known = {name: str(place) for name, place in places.items()} | {"0.0.0.0": "127.0.0.1"}
        words = [known.get(word, word) for word in shlex.split(command)]
        return [*words, "--port", str(self.port)] if is_server(command) and "--port" not in words else words

    def run(self, arguments: list[str], **environment: str) -> str:
        """What a command that ends well writes."""
        result = subprocess.run(
            arguments, capture_output=True, text=True, timeout=SECONDS, env=self.environment | environment
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def type(self, lines: str) -> str:
        """What the lines write that are typed into one shell, in the reader's home."""
        return self.run(["bash", "-euc", f"cd {shlex.quote(str(self.home))}\n{lines}"])

    @contextmanager
    def running(
        self, arguments: list[str], *, log: int | None = None, **environment: str
    ) -> Iterator[Process]:
        """A command that goes on; Ctrl-C ends it when the block is left."""
        process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=self.environment | environment,
            cwd=self.home,
        )
        try:
            yield process
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            process.communicate()


def read_until(process: Process, *texts: str, is_log: bool = False) -> str:
    """What the process has written, or logged, up to and with a line that holds the texts."""
    stream = process.stderr if is_log else process.stdout
    assert stream is not None
    seen = ""
    deadline = threading.Timer(SECONDS, process.kill)
    deadline.start()
    try:
        for line in stream:
            seen += line
            if all(text in line for text in texts):
                return seen
    finally:
        deadline.cancel()
    raise AssertionError(f"it ended without {texts}:\n{seen}")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """After `podlife apiserver`."""
    reader = Reader(tmp_path_factory.mktemp("home"))
    with reader.running(reader.arguments("podlife apiserver")) as server:
        read_until(server, "Ctrl-C stops it.")
        yield reader


def test_the_commands_are_found() -> None:
    """Else there would be nothing to try below, and nobody would notice."""
    assert (len(SERVERS), len(OTHERS), len(COLLECTOR), len(CONTROLLERS)) == (3, 4, 7, 3)


@pytest.mark.parametrize("command", SERVERS)
def test_every_way_to_start_a_server_serves_until_ctrl_c(tmp_path: Path, command: str) -> None:
    reader = Reader(tmp_path)
    with reader.running(reader.arguments(command)) as server:
        welcome = read_until(server, "Ctrl-C stops it.")
        assert "The API server is ready on https://127.0.0.1:" in welcome
    assert server.returncode == 0


@pytest.mark.parametrize("command", OTHERS)
def test_every_other_command_of_the_server_works_beside_it(
    reader: Reader, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "backup"
    if "restore" in command:
        reader.run(reader.arguments("podlife apiserver backup FILE", FILE=file))
    assert reader.run(reader.arguments(command, FILE=file, DIR=tmp_path / "restored"))


@pytest.mark.parametrize("command", COLLECTOR)
def test_every_command_of_the_collector_works_on_a_cluster(reader: Reader, command: str) -> None:
    connect = {"KUBECONFIG": str(reader.kubeconfig)}
    if " run " not in command:
        # Here nobody can be asked.
        confirmed = ["--yes"] if " sweep " in command else []
        assert reader.run([*shlex.split(command), *confirmed], **connect)
        return
    arguments = [word.replace(":8080", ":0") for word in shlex.split(command)]
    with reader.running(arguments, log=subprocess.PIPE, **connect) as collector:
        read_until(collector, "became leader", is_log=True)
    assert collector.returncode in (0, 130)


@pytest.mark.parametrize("command", CONTROLLERS)
def test_every_command_of_the_controllers_works_on_a_cluster(reader: Reader, command: str) -> None:
    connect = {"KUBECONFIG": str(reader.kubeconfig)}
    if " run" not in command:
        assert "deployment" in reader.run(shlex.split(command), **connect)
        return
    with reader.running(shlex.split(command), log=subprocess.PIPE, **connect) as controllers:
        read_until(controllers, "running: ", "deployment-controller", is_log=True)
    assert controllers.returncode in (0, 130)


def try_the_other_terminal(reader: Reader) -> None:
    """What is typed after `make up`, in one shell from one block to the next."""
    typed = [block for block in blocks("") if "\nkubectl " in block]
    assert len(typed) == 2
    arguments = ["podlife", "up", "--port", str(reader.port)]
    with reader.running(arguments) as up:
        read_until(up, "Ctrl-C stops it")
        shown = reader.run(["bash", "-euc", "\n".join(typed)])
    assert up.returncode == 0
    assert 'deployment "hello" successfully rolled out' in shown
    assert "in hello-" in shown
    assert (
        "partitioned roll out complete: 3 new pods" in shown or "statefulset rolling update complete" in shown
    )
    assert "node/node-1 drained" in shown
    assert "node-2 is stopped; its pods run on" in shown


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_what_is_typed_in_the_other_terminal_works(tmp_path: Path) -> None:
    try_the_other_terminal(Reader(tmp_path))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_what_the_server_says_to_type_works(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    with reader.running(reader.arguments("podlife apiserver --memory")) as server:
        welcome = read_until(server, "Ctrl-C stops it.")
        typed = [line.strip() for line in welcome.splitlines() if line.startswith("  ")]
        *once, lasting = typed
        assert lasting == "kubectl get pods --watch"
        reader.run(["bash", "-euc", "\n".join([*once, "kubectl get pods"])])
        (export,) = (line for line in typed if line.startswith("export "))
        kubeconfig = shlex.split(export)[1].partition("=")[2]
        with reader.running(shlex.split(lasting), KUBECONFIG=kubeconfig) as watch:
            read_until(watch, "web")


def test_the_example_of_the_client_lists_and_then_tells_every_change(reader: Reader) -> None:
    (example,) = blocks("python", CLIENT)
    kubeconfig = str(reader.kubeconfig)
    reader.run([sys.executable, "-c", create("first")], KUBECONFIG=kubeconfig)
    with reader.running([sys.executable, "-c", example], KUBECONFIG=kubeconfig) as listing:
        read_until(listing, "default first\n")
        reader.run([sys.executable, "-c", create("second")], KUBECONFIG=kubeconfig)
        read_until(listing, "ADDED second\n")


def create(name: str) -> str:
    """A program that makes a pod, as a reader of the example would write it."""
    return f"""
import asyncio
from podlife.client import PODS, Client, load

async def main():
    pod = {{"metadata": {{"name": "{name}"}}, "spec": {{"containers": [{{"name": "c", "image": "i"}}]}}}}
    async with Client.connect(load()) as client:
        await client.create(PODS, pod, "default")

asyncio.run(main())
"""


def test_every_target_of_make_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)
    assert {"up", "test"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_link_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in [
            re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings
        ]
