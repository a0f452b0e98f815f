"""The server as a process and as a component: it starts, reports its address, serves and shuts down."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife.apiserver.server import ApiServer, ServingInfo
from podlife.apiserver.settings import ApiServerSettings
from podlife.errors import ConfigError

START_SECONDS = 60


class Process:
    """A server in a process of its own, ready."""

    def __init__(self, process: subprocess.Popen[str], greeting: str) -> None:
        self.process = process
        self.greeting = greeting
        self.kubeconfig = Path(greeting.partition("export KUBECONFIG=")[2].split()[0])

    def request(
        self, path: str, identity: str = "admin", method: str = "GET", body: Any = None
    ) -> tuple[int, Any]:
        """Code and decoded body of a response to this identity; '' is unauthenticated."""
        config = yaml.safe_load(self.kubeconfig.with_name(f"{identity or 'admin'}.kubeconfig").read_text())
        tls = ssl.create_default_context(cafile=self.kubeconfig.parent / "pki" / "ca.crt")
        headers = {"Content-Type": "application/json"}
        if identity:
            headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"
        data = None if body is None else json.dumps(body).encode()
        url = config["clusters"][0]["cluster"]["server"] + path
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=tls, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def server(*arguments: str, folder: Path | None = None) -> Iterator[Process]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "podlife", "apiserver", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        greeting = ""
        for line in process.stdout:
            greeting += line
            if "Ctrl-C" in line:
                break
        assert "Ctrl-C" in greeting, process.stderr.read()
        yield Process(process, greeting)
    finally:
        process.kill()
        process.communicate(timeout=60)


def failed(*arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "podlife", "apiserver", *arguments],
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_it_serves_its_own_identities_and_nobody_else(tmp_path: Path) -> None:
    with server("--data", str(tmp_path), "--port", "0") as running:
        assert str(tmp_path / "admin.kubeconfig") in running.greeting
        code, body = running.request("/api/v1/namespaces/default")
        assert (code, json.loads(body)["metadata"]["name"]) == (200, "default")
        assert running.request("/api/v1/namespaces", "controllers")[0] == 200
        code, body = running.request("/api/v1/namespaces", "")
        assert (code, json.loads(body)["message"]) == (401, "Unauthorized")
        assert running.request("/livez", "") == (200, b"ok")
        for name in ("admin.kubeconfig", "controllers.kubeconfig", "tokens.csv", "pki/ca.pem", "store.db"):
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600, name


def test_the_folder_it_is_started_in_brings_no_code_into_it(tmp_path: Path) -> None:
    for module in ("aiohttp", "json", "podlife"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('code of somebody else')\n")
    with server("--memory", "--port", "0", folder=tmp_path) as running:
        assert running.request("/api/v1/namespaces")[0] == 200
        assert running.stop() == 0


def test_what_was_stored_and_who_was_known_is_there_after_a_restart(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path), "--port", "0")
    namespace = {"metadata": {"name": "kept"}}
    with server(*arguments) as first:
        assert first.request("/api/v1/namespaces", method="POST", body=namespace)[0] == 201
        tokens = (tmp_path / "tokens.csv").read_text()
        assert first.stop() == 0
    with server(*arguments) as second:
        assert second.request("/api/v1/namespaces/kept")[0] == 200
        assert (tmp_path / "tokens.csv").read_text() == tokens


def test_in_memory_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with server("--memory", "--port", "0") as running:
        assert running.request("/api/v1/namespaces/default")[0] == 200
        folder = running.kubeconfig.parent
        assert not (folder / "store.db").exists()
        assert running.stop(signal.SIGINT) == 0
        assert not folder.exists()


def test_a_port_in_use_is_told_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = failed("--data", str(tmp_path), "--port", str(port))
    assert f"port {port} on 127.0.0.1 is in use" in message
    assert "--port 0" in message


@pytest.mark.parametrize(
    ("bind", "host"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("localhost", "localhost")]
)
async def test_as_a_component_it_says_where_clients_can_reach_it_and_stops_when_told(
    tmp_path: Path, bind: str, host: str
) -> None:
    apiserver = ApiServer(ApiServerSettings(data=tmp_path, in_memory=True, bind=bind, port=0))
    seen: list[ServingInfo] = []

    def ready(serving: ServingInfo) -> None:
        seen.append(serving)
        apiserver.stop()

    async with asyncio.timeout(60):
        await apiserver.run(ready)
    assert seen[0].url.startswith(f"https://{host}:")
    assert seen[0].kubeconfig().exists()


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        ("no-such-host.invalid", r"no-such-host\.invalid is neither an IP address nor a known host name"),
        ("203.0.113.7", r"203\.0\.113\.7 is not an address of this machine"),
    ],
)
async def test_an_address_that_cannot_be_bound_is_a_config_error(
    tmp_path: Path, bind: str, message: str
) -> None:
    apiserver = ApiServer(ApiServerSettings(data=tmp_path, in_memory=True, bind=bind, port=0))
    with pytest.raises(ConfigError, match=message):
        await apiserver.run()
