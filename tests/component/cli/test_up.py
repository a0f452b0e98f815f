"""`podlife up` as a user has it: what is started, what is started again, what is still there the next time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import stat
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podlife.client import NODES, PODS, Client, Flags, load
from podlife.localcluster.state_dir import StateDir
from tests.kit.up_process import UpProcess, podlife, running_up
from tests.kit.wait import until_blocking
from tests.unit.cli.test_completions import offered

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as pods need Linux")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running_up(tmp_path_factory.mktemp("up"), "--nodes", "2") as up:
        yield up


def pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "demo", "command": ["sh", "-c", script]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def connected(kubeconfig: Path) -> Client:
    return Client.connect(load(Flags(kubeconfig=str(kubeconfig))))


async def create(up: UpProcess, made: dict[str, Any]) -> None:
    async with connected(up.kubeconfig) as client:
        await client.create(PODS, made, "default")


async def read(up: UpProcess, name: str) -> dict[str, Any]:
    async with connected(up.kubeconfig) as client:
        return await client.get(PODS, name, "default")


async def until_running(up: UpProcess, name: str, *, restarts: int = 0) -> None:
    def is_running(status: dict[str, Any]) -> bool:
        containers = status.get("containerStatuses") or [{"restartCount": -1, "state": {}}]
        return containers[0]["restartCount"] >= restarts and "running" in containers[0]["state"]

    async with connected(up.kubeconfig) as client, asyncio.timeout(60):
        while not is_running((await client.get(PODS, name, "default"))["status"]):
            await asyncio.sleep(0.05)


def written(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


async def test_a_pod_is_scheduled_to_a_node_and_runs(up: UpProcess) -> None:
    await create(up, pod("runs", "sleep 1000"))
    await until_running(up, "runs")
    assert (await read(up, "runs"))["spec"]["nodeName"] in ("node-0", "node-1")


def test_a_port_that_is_taken_is_said_and_nothing_is_left_running(up: UpProcess, tmp_path: Path) -> None:
    done = podlife("up", "--data", str(tmp_path), "--port", str(up.port))
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert f"port {up.port} on 127.0.0.1 is in use" in line
    # Nobody holds the folder any more.
    StateDir(tmp_path).claim()


def test_a_part_that_is_killed_is_started_again_and_that_is_one_line(up: UpProcess) -> None:
    before = up.part("controllers")
    os.kill(before["pid"], signal.SIGKILL)
    until_blocking(lambda: up.part("controllers")["pid"] not in (0, before["pid"]), up.said)
    assert up.part("controllers")["restarts"] == before["restarts"] + 1
    assert up.said.count("controllers was ended by SIGKILL; restarting in 0.5 s") == 1


def is_served(page: str) -> bool:
    """Whether the address leads to the page, and not to a stranger's."""
    url = urlsplit(page)
    line = HTTPConnection("127.0.0.1", url.port or 0, timeout=10)
    try:
        line.request("GET", f"{url.path}?{url.query}")
        answer = line.getresponse()
        return answer.status == 303 and "podlife-ui" in (answer.getheader("Set-Cookie") or "")
    except OSError:
        return False
    finally:
        line.close()


def test_the_page_is_served_and_keeps_its_address_when_its_process_is_killed(up: UpProcess) -> None:
    page = up.status()["page"]
    assert is_served(page)
    before = up.part("ui")
    os.kill(before["pid"], signal.SIGKILL)
    until_blocking(lambda: up.part("ui")["pid"] not in (0, before["pid"]), up.said)
    until_blocking(lambda: is_served(page), up.logs())
    assert up.status()["page"] == page


def test_a_node_that_was_stopped_stays_so_until_it_is_started(up: UpProcess) -> None:
    assert podlife("down", "node-1", "--data", str(up.data)).returncode == 0
    assert up.part("node-1")["state"] == "stopped"
    assert podlife("up", "node-1", "--data", str(up.data)).returncode == 0
    until_blocking(lambda: up.part("node-1")["state"] == "running", up.said)
    refused = podlife("down", "node-7", "--data", str(up.data))
    assert refused.returncode == 1
    assert refused.stderr == "podlife: unknown node 'node-7'; this cluster has node-0 to node-1\n"


async def test_a_node_of_another_process_joins_by_the_file(up: UpProcess, tmp_path: Path) -> None:
    join = up.data / "join.kubeconfig"
    assert stat.S_IMODE(join.stat().st_mode) == 0o600
    data = tmp_path / "more"
    flags = ["--name", "more", "--join", str(join), "--data", str(data), "--listen", "127.0.0.1:0"]
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen([sys.executable, "-m", "podlife", "node", *flags], stdout=log, stderr=log)
    try:
        until_blocking(
            lambda: "node more joined the cluster" in (tmp_path / "log").read_text(), "it did not join"
        )
        assert stat.S_IMODE((data / "kubeconfig").stat().st_mode) == 0o600
        async with connected(data / "kubeconfig") as client:
            assert (await client.get(NODES, "more"))["metadata"]["name"] == "more"
    finally:
        node.terminate()
        node.wait(60)


def test_status_shows_components_nodes_and_pods(up: UpProcess) -> None:
    shown = up.status()
    names = ["apiserver", "controllers", "node-0", "node-1", "ui"]
    assert [each["name"] for each in shown["components"]] == names
    assert shown["page"] in up.said
    assert {"node-0", "node-1"} <= {each["name"] for each in shown["nodes"]}
    table = podlife("status", "--data", str(up.data)).stdout
    assert "COMPONENT" in table
    assert "node-1" in table


def test_status_where_none_runs_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = podlife("status", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"podlife: no `podlife up` runs on {tmp_path}")


def test_down_where_none_runs_does_nothing(tmp_path: Path) -> None:
    done = podlife("down", "--data", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


async def test_stopped_pods_have_their_grace_and_run_again_after_the_next_up(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    # It says that it has begun when it hears what it is told.
    script = f"trap 'sleep 0.3; echo end >> {lines}; exit 0' TERM; echo start >> {lines}; while :; do sleep 0.05; done"
    with running_up(tmp_path, "--nodes", "1") as up:
        kept = pod("kept", script)
        hook = {"exec": {"command": ["sh", "-c", f"echo hook >> {lines}"]}}
        kept["spec"]["containers"][0]["lifecycle"] = {"preStop": hook}
        await create(up, kept)
        await until_running(up, "kept")
        until_blocking(lambda: written(lines) == ["start"], up.logs())
        assert up.stop() == 0
        assert written(lines) == ["start", "hook", "end"]
        up.start()
        await until_running(up, "kept", restarts=1)
        until_blocking(lambda: written(lines) == ["start", "hook", "end", "start"], up.logs())


async def test_pods_outlive_an_up_that_was_killed_and_are_found_by_the_next(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    with running_up(tmp_path, "--nodes", "1", "--stop-timeout", "1000s") as up:
        await create(up, pod("kept", f"echo start >> {lines}; exec sleep 1000"))
        await until_running(up, "kept")
        parts = [each["pid"] for each in up.parts()]
        up.kill()
        until_blocking(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in parts), "parts outlive their up"
        )
        up.start()
        await until_running(up, "kept")
        until_blocking(lambda: written(lines) == ["start"], up.logs())
        # Does not hear TERM at all: without `--now` it would have far longer than this test.
        deaf = f"trap '' TERM; echo deaf >> {lines}; while :; do sleep 0.05; done"
        await create(up, pod("deaf", deaf, terminationGracePeriodSeconds=1000))
        until_blocking(lambda: written(lines) == ["start", "deaf"], up.logs())
        assert podlife("down", "--now", "--data", str(up.data)).returncode == 0
        assert not up.is_running


async def test_down_after_a_kill_ends_the_pods_that_run_on_and_the_token(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    script = f"trap 'echo end >> {lines}; exit' TERM; echo $$$$ >> {lines}; while :; do sleep 0.05; done"
    with running_up(tmp_path, "--nodes", "1") as up:
        await create(up, pod("left", script))
        until_blocking(lambda: len(written(lines)) == 1, up.logs())
        token = (up.data / "tokens.csv").read_text()
        assert "system:bootstrap:" in token
        up.kill()
        [pid] = written(lines)
        assert Path(f"/proc/{pid}").exists()
        done = podlife("down", "--data", str(up.data))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == "stopped (1 pod ended)"
        assert written(lines) == [pid, "end"]
        assert "system:bootstrap:" not in (up.data / "tokens.csv").read_text()
        again = podlife("down", "--data", str(up.data))
        assert again.stdout == f"no `podlife up` runs on {up.data}\n"
        # What was stored is still wanted.
        up.start()
        await until_running(up, "left", restarts=1)
        assert "create deployment hello" not in up.said


def test_without_a_folder_no_cluster_is_taken_for_another(up: UpProcess, tmp_path: Path) -> None:
    for command in (("down",), ("down", "node-0"), ("up", "node-0"), ("status",)):
        refused = podlife(*command, XDG_DATA_HOME=str(tmp_path), KUBECONFIG="")
        assert (refused.returncode, refused.stdout) == (1, ""), command
        assert f"--data {up.data}" in refused.stderr
    assert up.is_running
    shown = podlife("status", "-o", "yaml", XDG_DATA_HOME=str(tmp_path), KUBECONFIG=str(up.kubeconfig))
    assert f"data: {up.data}" in shown.stdout


def test_a_command_that_knows_no_server_names_the_kubeconfig_of_a_running_up(
    up: UpProcess, tmp_path: Path
) -> None:
    refused = podlife("stuck", HOME=str(tmp_path), KUBECONFIG="")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert "no API server is configured" in line
    assert f"export KUBECONFIG={up.kubeconfig}" in line


async def test_a_shell_is_offered_pods_namespaces_and_nodes_of_the_cluster(up: UpProcess) -> None:
    await create(up, pod("offered", "sleep 1000"))
    # The server is asked for a moment only: a busy machine may need several tries.
    until_blocking(
        lambda: offered("podlife explain pod offer", up.kubeconfig) == ["offered"], "the pod is not offered"
    )
    assert offered("podlife explain pod -n kube-system offer", up.kubeconfig) == []
    namespaces = ["kube-node-lease", "kube-public", "kube-system"]
    until_blocking(
        lambda: offered("podlife stuck -n kube-", up.kubeconfig) == namespaces, "no namespaces are offered"
    )
    down = f"podlife down --data {up.data} "
    until_blocking(lambda: offered(down, up.kubeconfig) == ["node-0", "node-1"], "the nodes are not offered")


def test_http_to_a_server_that_expects_tls_is_told_to_write_https(up: UpProcess) -> None:
    refused = podlife("stuck", "--server", f"http://127.0.0.1:{up.port}", "--token", "x")
    assert refused.returncode == 1
    assert "if the server expects TLS, write https://" in refused.stderr


def test_detached_it_comes_back_when_all_is_up_and_down_ends_it(tmp_path: Path) -> None:
    flags = ("--detach", "--data", str(tmp_path), "--port", "0", "--nodes", "1", "--runtime", "sim")
    started = podlife("up", *flags)
    try:
        assert (started.returncode, started.stderr) == (0, "")
        assert "1 node is ready" in started.stdout
        assert f"down --data {tmp_path}` stops it" in started.stdout
        refused = podlife("up", *flags)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "is in use by `podlife up`" in refused.stderr
    finally:
        ended = podlife("down", "--data", str(tmp_path))
    assert ended.stdout.splitlines()[-1] == "stopped"


async def test_a_reader_that_has_gone_neither_stops_it_nor_its_orderly_end(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    flags = ("--data", str(tmp_path / "data"), "--port", "0", "--nodes", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "podlife", "up", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert any("Ctrl-C stops it" in line for line in process.stdout)
        process.stdout.close()
        up = UpProcess(tmp_path)
        script = f"trap 'echo end >> {lines}; exit' TERM; echo start >> {lines}; while :; do sleep 0.05; done"
        await create(up, pod("told", script))
        await until_running(up, "told")
        until_blocking(lambda: written(lines) == ["start"], "it did not begin")
        process.terminate()
        assert process.wait(60) == 0
        assert written(lines) == ["start", "end"]
    finally:
        process.kill()
        process.wait(60)


def test_a_terminal_has_a_view_and_ends_it_when_it_is_closed(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    flags = ("--data", str(tmp_path), "--port", "0", "--nodes", "1", "--runtime", "sim")
    process = subprocess.Popen(
        [sys.executable, "-m", "podlife", "up", *flags],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        preexec_fn=take_terminal,  # noqa: PLW1509 - a terminal is taken only there, and there are no threads
    )
    os.close(theirs)
    deadline = threading.Timer(60, process.kill)
    deadline.start()
    try:
        shown = ""
        while not ("Ctrl-C stops it" in shown and "pods: none" in shown):
            shown += os.read(ours, 65536).decode(errors="replace")
        assert "STATE" in shown
        assert "node-0" in shown
        os.close(ours)
        assert process.wait(60) == 0
    finally:
        deadline.cancel()
        process.kill()
        process.wait(60)
