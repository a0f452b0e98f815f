"""Many, slow, silent or vanished clients: the server's memory stays bounded and it serves the others.

`pytest -s` prints the measured memory of an idle watch."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.component.apiserver.requests import CONFIG_MAPS
from tests.kit.server_process import ServerProcess, running_server

IDLE_WATCHES = 1_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(tmp_path) as server:
        yield server


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Every watch is an open file on this side too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE_WATCHES + 500
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.skip(f"this user may open {hard} files, {wanted} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Client:
    """A raw connection, without an HTTP client."""

    def __init__(
        self, server: ServerProcess, tls: ssl.SSLContext, token: str, receive_buffer: int = 0
    ) -> None:
        plain = socket.socket()
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(120)
        plain.connect(("127.0.0.1", server.port))
        self.socket = tls.wrap_socket(plain, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")
        self._head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"

    def send(self, method: str, path: str, body: bytes = b"", *, missing: bytes = b"") -> None:
        """A request, of whose body the last part may still be missing."""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
        size = len(body) + len(missing)
        self.socket.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode() + body)

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self.file.readline().split()[1])
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def answer(self) -> tuple[int, Any]:
        status, headers = self.head()
        return status, json.loads(self.file.read(int(headers["content-length"])))

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        self.send(method, path, body)
        return self.answer()

    def chunk(self) -> bytes:
        """The next piece of a stream; empty at its orderly end."""
        data = self.file.read(int(self.file.readline(), 16))
        self.file.readline()
        return data

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Clients:
    """Opens clients and closes them all."""

    def __init__(self, server: ServerProcess, stack: ExitStack) -> None:
        self._server, self._stack = server, stack
        self._tls, self._token = server.tls(), server.token

    def open(self, receive_buffer: int = 0) -> Client:
        client = Client(self._server, self._tls, self._token, receive_buffer)
        self._stack.callback(client.close)
        return client

    def watch(self, path: str, receive_buffer: int = 0) -> Client:
        client = self.open(receive_buffer)
        client.send("GET", f"{path}?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=false")
        assert client.head()[0] == 200
        return client


@pytest.fixture
def clients(server: ServerProcess) -> Iterator[Clients]:
    with ExitStack() as stack:
        yield Clients(server, stack)


def config_map(name: str, size: int = 10) -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": {"x": "x" * size}}).encode()


def test_a_thousand_idle_watches_cost_little_and_all_see_the_next_event(
    server: ServerProcess, clients: Clients
) -> None:
    writer = clients.open()
    assert writer.ask("GET", CONFIG_MAPS)[0] == 200
    before = server.resident_bytes
    watches = [clients.watch(CONFIG_MAPS) for _ in range(IDLE_WATCHES)]
    cost = (server.resident_bytes - before) / IDLE_WATCHES
    print(f"{IDLE_WATCHES} idle watches: {cost / 1024:.0f} KiB each")  # noqa: T201 - a figure, for who looks
    assert cost < 96 * 1024

    assert writer.ask("POST", CONFIG_MAPS, config_map("news"))[0] == 201
    for watch in watches:
        event = json.loads(watch.chunk())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "news")


def test_watches_that_nobody_reads_are_bounded_and_told_when_history_has_gone_on(
    server: ServerProcess, clients: Clients
) -> None:
    writer = clients.open()
    code, first = writer.ask("POST", CONFIG_MAPS, config_map("m"))
    assert code == 201
    before = server.resident_bytes
    silent = [clients.watch(CONFIG_MAPS, receive_buffer=4096) for _ in range(20)]
    many, size = 100, 900_000
    for number in range(many):
        body = {"metadata": {"name": "m"}, "data": {"x": str(number % 10) * size}}
        assert writer.ask("PUT", f"{CONFIG_MAPS}/m", json.dumps(body).encode())[0] == 200
    grown = server.resident_bytes - before
    print(f"{len(silent)} silent watches, {many * size >> 20} MiB of events: {grown >> 20} MiB")  # noqa: T201
    # History holds 64 MiB; each watcher unread for itself would be twenty times what was written.
    assert grown < 256 << 20

    late = clients.open()
    late.send("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
    assert late.head()[0] == 200
    event = json.loads(late.chunk())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_half_open_and_slow_clients_keep_nobody_from_being_served(
    server: ServerProcess, clients: Clients
) -> None:
    with ExitStack() as stack:
        for number in range(300):
            if number % 3 == 0:
                # Not even a handshake.
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            elif number % 3 == 1:
                clients.open().socket.sendall(b"GET /api HTT")
            else:
                clients.open().send("POST", CONFIG_MAPS, b'{"metadata":', missing=b'{"name":"never"}}')
        client = clients.open()
        for number in range(20):
            assert client.ask("POST", CONFIG_MAPS, config_map(f"served{number}"))[0] == 201


async def test_told_to_stop_it_finishes_what_was_begun_and_ends_watches_in_order(
    server: ServerProcess, clients: Clients
) -> None:
    begun, watch = clients.open(), clients.watch(CONFIG_MAPS)
    body = config_map("begun", 1000)
    begun.send("POST", CONFIG_MAPS, body[:500], missing=body[500:])
    other = clients.open()
    other.send("GET", "/readyz/")
    # The server has answered a later request, so it has begun to read the earlier one.
    assert b"200" in other.file.readline()

    stopping = asyncio.get_running_loop().run_in_executor(None, server.stop)
    assert await asyncio.to_thread(watch.chunk) == b"", "an orderly end, not a cut connection"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
    begun.socket.sendall(body[500:])
    code, created = await asyncio.to_thread(begun.answer)
    assert (code, created["metadata"]["name"]) == (201, "begun")
    assert await stopping == 0

    server.start()
    async with server.session() as session, session.get(f"{CONFIG_MAPS}/begun") as answer:
        assert answer.status == 200
