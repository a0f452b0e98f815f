"""An API server for the commands under test, a client for what the tests set up, and pods in every state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator, TokenFile, UserInfo, format_tokens
from podlife.apiserver.http import HttpServer
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.client import Client, Connection, TokenAuth
from podlife.clock import SystemClock
from tests.component.cli.faulty_proxy import FaultyProxy, proxied
from tests.kit.gc_states import States

ADMIN_TOKEN, NOBODY_TOKEN = "admin-token", "nobody-token"


@dataclass(frozen=True)
class Server:
    """In the test's own process, over plain HTTP on loopback: it starts at once."""

    url: str

    @property
    def admin(self) -> list[str]:
        return ["--server", self.url, "--token", ADMIN_TOKEN]

    @property
    def nobody(self) -> list[str]:
        """Somebody who may look around and do nothing."""
        return ["--server", self.url, "--token", NOBODY_TOKEN]

    def session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None)
        return aiohttp.ClientSession(self.url, connector=aiohttp.TCPConnector(limit=0), timeout=timeout)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    tokens = tmp_path / "tokens.csv"
    people = [(ADMIN_TOKEN, ADMIN), (NOBODY_TOKEN, UserInfo("nobody", "nobody", ("people",)))]
    tokens.write_text(format_tokens(people))
    store = MemoryStore()
    handler = assemble(store, clock=SystemClock(), authenticator=Authenticator(TokenFile(tokens)))
    await create_system_namespaces(handler.registry, ADMIN)
    face = HttpServer(handler, tls=None)
    await face.start("127.0.0.1", 0)
    try:
        yield Server(f"http://127.0.0.1:{face.port}")
    finally:
        await face.stop()
        await store.close()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client.connect(Connection(server.url, auth=TokenAuth(ADMIN_TOKEN))) as connected:
        yield connected


@pytest.fixture
async def states(client: Client) -> States:
    made = States(client, "gc")
    await made.begin()
    return made


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[FaultyProxy]:
    async with proxied(server.session) as relay:
        relay.flags = ["--server", relay.url, "--token", ADMIN_TOKEN]
        yield relay
