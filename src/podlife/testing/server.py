"""The API server of a test's cluster: everything in memory, and a socket only where somebody asks for one."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator, TokenFile
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.settings import ApiServerSettings
from podlife.apiserver.storage import MemoryStore
from podlife.client import Client, InProcessTransport
from podlife.clock import Clock
from podlife.testing.fault_injection import Way
from podlife.testing.request_log import Audit
from podlife.wire import Peer

__all__ = ["Server"]

_ADMINISTRATOR = Peer("admin", ("system:masters",))
_STOP_SECONDS = 2.0


class Server:
    """`way` is what everybody's requests go through; `handler` the server itself, without anything in between."""

    def __init__(self, clock: Clock, chance: random.Random, *, toleration_seconds: int) -> None:
        self.audit = Audit()
        self.kubeconfig: Path | None = None
        self._clock = clock
        self.handler: ApiHandler = assemble(
            MemoryStore(),
            clock=clock,
            authenticator=Authenticator(),
            chance=chance,
            not_ready_toleration_seconds=toleration_seconds,
            unreachable_toleration_seconds=toleration_seconds,
        )
        self._direct = self.audit.over(self.handler)
        self.way = Way("the API server", self._direct)

    async def prepare(self) -> None:
        await create_system_namespaces(self.handler.registry, ADMIN)

    def connect(
        self, name: str, peer: Peer = _ADMINISTRATOR, *, is_beside: bool = False
    ) -> tuple[Client, Way]:
        """A client of its own for a component, and the way that only it goes. One that is beside does not share the
        way of all: nothing that happens there concerns it."""
        way = Way(name, self._direct if is_beside else self.way)
        transport = InProcessTransport(way, headers={"User-Agent": name}, peer=peer)
        return Client(transport), way

    async def listen(self, stack: AsyncExitStack) -> None:
        """Answer on a free port of this machine as well, until the stack is left."""
        from podlife.apiserver.http import HttpServer
        from podlife.apiserver.identities import prepare_identities, write_kubeconfigs

        folder = Path(tempfile.mkdtemp(prefix="podlife-testing-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        identities = prepare_identities(ApiServerSettings(port=0), folder, self._clock)
        self.handler.authenticator = Authenticator(TokenFile(identities.tokens_file))
        tls = identities.ca.server_context(identities.serving_file)
        face = HttpServer(self.way, tls=tls, identify=self.handler.authenticator.authenticate)
        await face.start("127.0.0.1", 0)
        stack.push_async_callback(face.stop, seconds=_STOP_SECONDS)
        write_kubeconfigs(folder, f"https://127.0.0.1:{face.port}", identities)
        self.kubeconfig = folder / "admin.kubeconfig"
