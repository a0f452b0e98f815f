"""Who has no credentials costs little: a connection a megabyte at most, whatever is sent over it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.fuzz.hostile import body, places
from tests.fuzz.test_hostile import KEPT_BYTES, MIB, quiet_down
from tests.fuzz.wire import Wire
from tests.kit.server_process import ServerProcess, running_server

CONNECTIONS = 60
CONNECTION_BYTES = MIB

LINE = b"X-%d: " + b"x" * 62_000 + b"\r\n"
START = b"GET /version HTTP/1.1\r\nHost: x\r\n"
# What each connection sends; the end of the last head never comes.
SENT = {
    "headers without end": START + b"".join(LINE % number for number in range(120)),
    "a head that is nearly whole": START + LINE % 0 + b"X: " + b"x" * 50_000,
    "heads one after the other": (START + LINE % 0 + b"\r\n") * 30 + START + LINE % 0,
    "a long line": b"GET /" + b"x" * 63_000,
    "nothing": b"",
    "what is no HTTP": b"\0" * 4_000_000,
    "a body that nobody waits for": b"POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n"
    + b"x" * 3_000_000,
}  # fmt: skip


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("strangers")) as server:
        wire = Wire(server)
        assert wire.request("GET", "/version").status == 200
        wire.close()
        yield server


def send(connection: socket.socket, data: bytes) -> None:
    # Who has heard enough stops reading, or hangs up.
    connection.settimeout(0.5)
    with suppress(OSError, ssl.SSLError):
        connection.sendall(data)


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_a_connection_without_credentials_costs_at_most_a_megabyte(
    server: ServerProcess, sent: bytes
) -> None:
    wire = Wire(server)
    before = server.resident_bytes
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            send(stack.enter_context(wire.connect()), sent)
        # What has been refused meanwhile is given back a moment later; what is kept of each counts.
        during = quiet_down(server, before + CONNECTIONS * CONNECTION_BYTES)
        assert during <= before + CONNECTIONS * CONNECTION_BYTES
        assert wire.request("GET", "/version").status == 200
    after = quiet_down(server, before + KEPT_BYTES)
    wire.close()
    print(  # noqa: T201 - what `make fuzz` shows
        f"\n  {(during - before) / CONNECTIONS / 1024:.0f} KB for each connection; "
        f"memory {before / MIB:.0f} MB before, {after / MIB:.0f} MB after"
    )
    assert after <= before + KEPT_BYTES


def test_a_server_that_computes_ends_when_it_is_told_to(server: ServerProcess) -> None:
    ports = next(
        place for place in places() if place.field.name == "ports" and "Container" in place.owner.name
    )
    data = body(ports, "full different")
    wire = Wire(server)
    head = f"POST {ports.seed.collection}?dryRun=All HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    assert wire.request("GET", "/version").status == 200
    with ExitStack() as stack:
        connections = [stack.enter_context(wire.connect()) for _ in range(8)]
        for connection in connections:
            connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data)
        # All are under way: the server answers others meanwhile.
        assert wire.request("GET", "/version").status == 200
        # In order, or cut off at its deadline where the machine is too slow for that.
        assert server.stop() in (0, 1)
    wire.close()
