"""docs/controllers.md and docs/write-a-controller.md, word for word: what they tell people to type and to save does
what they say, on a server in a process of its own. README.md has tests of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.component.test_readme import CLIENT, ROOT, SECONDS, Reader, blocks, create, read_until
from tests.kit.real_parts import free_port

CONTROLLERS = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")
WRITE = (ROOT / "docs" / "write-a-controller.md").read_text(encoding="utf-8")

Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """After `podlife apiserver`, with KUBECONFIG exported."""
    reader = Reader(tmp_path_factory.mktemp("home"))
    with reader.running(reader.arguments("podlife apiserver --memory")) as server:
        welcome = read_until(server, "Ctrl-C stops it.")
        found = re.search(r"export KUBECONFIG=(\S+)", welcome)
        assert found is not None
        reader.environment["KUBECONFIG"] = found[1]
        yield reader


class Logging:
    """A program of the reader's whose standard error is its log."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.log = ""

    def wait_for(self, text: str) -> None:
        while text not in self.log:
            self._read(text)

    def wait_for_pods_created(self, count: int, *, of: str) -> None:
        """What was done is told once a second: in how many lines depends on when it was."""
        told = re.compile(rf"{of}: (?:(\d+) pods created|Created pod: )")
        while sum(int(number or 1) for number in told.findall(self.log)) < count:
            self._read(f"{count} pods created")

    def _read(self, wanted: str) -> None:
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert line, f"it ended without {wanted!r}:\n{self.log}"
        self.log += line

    def end(self, number: int) -> int:
        self._process.send_signal(number)
        _, rest = self._process.communicate(timeout=SECONDS)
        self.log += rest
        return self._process.returncode


@contextmanager
def started(reader: Reader, *arguments: str) -> Iterator[Logging]:
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=reader.environment,
        cwd=reader.home,
    )
    deadline = threading.Timer(SECONDS, process.kill)
    deadline.start()
    try:
        yield Logging(process)
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()


def make_pool(reader: Reader, name: str) -> None:
    text = f"""
import asyncio
from podlife.client import CONFIG_MAPS, Client, load

async def main():
    data = {{"image": "i", "command": "sleep 1", "size": "3"}}
    pool = {{"metadata": {{"name": "{name}", "labels": {{"warm-pool": ""}}}}, "data": data}}
    async with Client.connect(load()) as client:
        await client.create(CONFIG_MAPS, pool, "default")

asyncio.run(main())
"""
    reader.run([sys.executable, "-c", text])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_what_is_typed_in_a_nodes_place_makes_pods_ready_and_jobs_complete(reader: Reader) -> None:
    (try_it,) = (block for block in blocks("", CONTROLLERS) if "kubectl create deployment" in block)
    (patches,) = (block for block in blocks("", CONTROLLERS) if "kubectl patch" in block)
    typed = [line for line in try_it.splitlines() if line.startswith("kubectl ")]
    with started(reader, "podlife", "controllers", "run") as controllers:
        controllers.wait_for("running: ")
        reader.run(["bash", "-euc", "\n".join(typed)])
        controllers.wait_for_pods_created(3, of=r"ReplicaSet default/web-\w+")
        shown = reader.run(["bash", "-euc", patches])
        assert shown.count("deployment.apps/web condition met") == 1, shown
        assert shown.endswith("job.batch/once condition met\n")
        assert controllers.end(signal.SIGINT) == 0
    assert "Scaled up replica set web-" in controllers.log


def test_the_controller_of_the_page_says_what_it_does_and_ends_without_a_traceback(reader: Reader) -> None:
    program = reader.home / "warm_pools.py"
    program.write_text(blocks("python", WRITE)[0])
    make_pool(reader, "ci")
    with started(reader, sys.executable, str(program)) as pools:
        pools.wait_for_pods_created(3, of="ConfigMap default/ci")
        assert pools.end(signal.SIGINT) == 0
    assert "Traceback" not in pools.log


def test_in_a_cluster_it_answers_gives_the_lease_back_and_ends_at_sigterm(reader: Reader) -> None:
    alone, in_a_cluster = blocks("python", WRITE)
    port = free_port()
    program = reader.home / "in_a_cluster.py"
    text = alone.partition("async def main()")[0] + in_a_cluster
    assert text.count("8080") == 1
    program.write_text(text.replace("8080", str(port)))
    for _ in range(2):
        # The second one need not wait: the lease was given back.
        with started(reader, sys.executable, str(program)) as pools:
            pools.wait_for("became leader of lease kube-system/warm-pools")
            pools.wait_for("running: warm-pools")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=SECONDS) as answer:
                assert answer.read() == b"ok"
            assert pools.end(signal.SIGTERM) == 0
        assert "Traceback" not in pools.log
        assert "waiting for lease" not in pools.log


def test_a_server_that_cannot_be_reached_is_told_without_any_setting_of_logs(reader: Reader) -> None:
    program = reader.home / "silent.py"
    text = blocks("python", WRITE)[0]
    program.write_text(text.replace("    logging.basicConfig(level=logging.INFO)\n", ""))
    elsewhere = reader.home / "elsewhere.kubeconfig"
    clusters = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}]
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    config = {"clusters": clusters, "contexts": [context], "users": users, "current-context": "c"}
    elsewhere.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    with started(reader, "env", f"KUBECONFIG={elsewhere}", sys.executable, str(program)) as pools:
        pools.wait_for("cannot be reached")
        assert "API server unreachable" in pools.log, pools.log
        assert pools.end(signal.SIGINT) == 0
    assert "Traceback" not in pools.log


def test_the_example_of_the_client_ends_without_a_traceback(reader: Reader) -> None:
    (example,) = blocks("python", CLIENT)
    reader.run([sys.executable, "-c", create("seen")])
    process = subprocess.Popen(
        [sys.executable, "-c", example],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=reader.environment,
    )
    try:
        read_until(process, "default seen\n")
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert complaint == ""
