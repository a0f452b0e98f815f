"""The API server of a test cluster: in memory, with a socket only on request."""

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
from podlife.testing.fault_injection import FaultInjection
from podlife.testing.request_log import RequestLog
from podlife.wire import Peer

_ADMINISTRATOR = Peer("admin", ("system:masters",))
_STOP_SECONDS = 2.0


class Server:
    """All requests pass `faults`; `handler` is the server itself."""

    def __init__(self, clock: Clock, chance: random.Random, *, toleration_seconds: int) -> None:
        self.audit = RequestLog()
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
        self.faults = FaultInjection("the API server", self._direct)

    async def prepare(self) -> None:
        await create_system_namespaces(self.handler.registry, ADMIN)

    def connect(
        self, name: str, peer: Peer = _ADMINISTRATOR, *, is_beside: bool = False
    ) -> tuple[Client, FaultInjection]:
        """A client for a component, and the faults of its connection. With `is_beside` it bypasses the shared ones."""
        faults = FaultInjection(name, self._direct if is_beside else self.faults)
        transport = InProcessTransport(faults, headers={"User-Agent": name}, peer=peer)
        return Client(transport), faults

    async def listen(self, stack: AsyncExitStack) -> None:
        """Also serve on a free port of this machine, until the stack is closed."""
        from podlife.apiserver.http import HttpServer
        from podlife.apiserver.identities import prepare_identities, write_kubeconfigs

        folder = Path(tempfile.mkdtemp(prefix="podlife-testing-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        identities = prepare_identities(ApiServerSettings(port=0), folder, self._clock)
        self.handler.authenticator = Authenticator(TokenFile(identities.tokens_file))
        tls = identities.ca.server_context(identities.serving_file())
        http = HttpServer(self.faults, tls=tls, identify=self.handler.authenticator.authenticate)
        await http.start("127.0.0.1", 0)
        stack.push_async_callback(http.stop, seconds=_STOP_SECONDS)
        write_kubeconfigs(folder, f"https://127.0.0.1:{http.port}", identities)
        self.kubeconfig = folder / "admin.kubeconfig"
