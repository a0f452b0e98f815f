"""The page of `podlife ui` as a daemon: watches a cluster, or reads a recording, and serves it to browsers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podlife.aio import cancel_and_wait, spawn
from podlife.client import Client, Connection
from podlife.clock import Clock, SystemClock
from podlife.daemons.connection import connected
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.diagnosis import acting_rules
from podlife.errors import ConfigError, ForbiddenError
from podlife.ui.access import Access, is_loopback
from podlife.ui.cluster_api import ClusterApi, ClusterSettings
from podlife.ui.feed import Feed, LiveFeed
from podlife.ui.lives import Lives
from podlife.ui.observer import Observer
from podlife.ui.policy import follow_policy
from podlife.ui.recording import Recorder, Recording
from podlife.ui.server import STATIC, PageServer

PORT = 8480
_RIGHTS = "the role view, with nodes and leases,"


@dataclass(frozen=True, slots=True)
class UiSettings:
    """Of a cluster (`connection`) or of a recording (`replay`)."""

    connection: Connection | None = None
    replay: Path | None = None
    host: str = "127.0.0.1"
    # 0: the usual port, or any free one if that is taken.
    port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    # Empty for all.
    namespace: str = ""
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    policy_name: str = ""
    record: Path | None = None
    allows_actions: bool = False
    request_timeout_seconds: float = 60.0
    # Empty: a random one. Another process that must know the address chooses it.
    token: str = ""
    static: Path = STATIC


async def run(
    settings: UiSettings,
    *,
    on_ready: Callable[[str], None] | None = None,
    shutdown: Shutdown = never_stopped,
) -> None:
    """Serve until `shutdown` or cancellation. `on_ready` is called with the address, which has the token in it, as soon
    as the page can be opened. Raises PodlifeError when it cannot serve."""
    tls = _tls(settings)
    async with AsyncExitStack() as stack:
        if settings.replay is not None:
            recording = await asyncio.to_thread(Recording, settings.replay)
            running = spawn(recording.run(), name="replay", on_failure=lambda _: None)
            stack.push_async_callback(cancel_and_wait, running)
            await _serve(settings, tls, recording, None, on_ready, shutdown)
            return
        if settings.connection is None:
            raise ConfigError("neither a cluster nor a recording to show")
        timeout = settings.request_timeout_seconds
        client = await stack.enter_async_context(
            connected(settings.connection, timeout_seconds=timeout, rights=_RIGHTS)
        )
        # Fails at once for a server that is not there, or refuses the credentials.
        with suppress(ForbiddenError):
            await client.request("GET", "/version")
        clock = SystemClock()
        lives = Lives(acting_rules(settings.cluster.collector))
        feed = await stack.enter_async_context(_observing(settings, client, clock, lives))
        cluster = ClusterApi(client, clock, settings.cluster, lives)
        stack.push_async_callback(cluster.stop)
        await _serve(settings, tls, feed, cluster, on_ready, shutdown)


@asynccontextmanager
async def _observing(
    settings: UiSettings, client: Client, clock: Clock, lives: Lives
) -> AsyncIterator[LiveFeed]:
    collector = settings.cluster.collector
    observer = Observer(
        client.named("ui"), clock, lives, namespace=settings.namespace, fallback=client.namespace or "default"
    )
    about: dict[str, Any] = {
        "cluster": settings.connection.server if settings.connection else "",
        "actions": settings.allows_actions,
        "policy": settings.policy_name,
        "flags": settings.cluster.kubectl_flags,
    }
    feed = LiveFeed(lives, observer, clock, about)
    recorder = None if settings.record is None else Recorder(settings.record)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(observer.run(), name="observer"),
            group.create_task(feed.run(), name="feed"),
        ]
        if recorder is not None:
            tasks.append(group.create_task(recorder.run(feed), name="recorder"))
        if collector.policy is not None:
            tasks.append(group.create_task(follow_policy(client, clock, collector, lives), name="policy"))
        try:
            yield feed
        finally:
            for task in tasks:
                task.cancel()


async def _serve(
    settings: UiSettings,
    tls: ssl.SSLContext | None,
    feed: Feed,
    cluster: ClusterApi | None,
    on_ready: Callable[[str], None] | None,
    shutdown: Shutdown,
) -> None:
    access = Access(settings.host, 0, tls is not None)
    server = PageServer(
        feed, lambda: access, cluster, allows_actions=settings.allows_actions, static=settings.static
    )
    ports = (settings.port,) if settings.port else (PORT, 0)
    async with server.serving(settings.host, ports, tls) as port:
        chosen = {"token": settings.token} if settings.token else {}
        access = Access(settings.host, port, tls is not None, **chosen)
        if on_ready is not None:
            on_ready(access.url)
        stopped = asyncio.Event()
        with shutdown(stopped.set):
            await stopped.wait()


def _tls(settings: UiSettings) -> ssl.SSLContext | None:
    """Raises ConfigError, also for an address beyond this machine without TLS."""
    cert, key = settings.tls_cert_file, settings.tls_private_key_file
    if not cert and not key:
        if not is_loopback(settings.host):
            raise ConfigError(
                f"refusing to serve {settings.host or 'every address'} without TLS: give --tls-cert-file and "
                "--tls-private-key-file, or bind to 127.0.0.1"
            )
        return None
    if not cert or not key:
        raise ConfigError("--tls-cert-file and --tls-private-key-file need each other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot use the certificate {cert} with the key {key}: {why}") from None
    return context
