"""`podlife controllers run` on kube-apiserver while everything breaks around it: never a pod too many, all at the end.

A watch of the tests' own sees every pod there ever was. Pods are only created here, so that one too many shows twice:
as one more that came, and as one that went.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest

from podlife.aio import cancel_and_wait
from podlife.api.views import MetadataOnly
from podlife.client import NAMESPACES, PODS, REPLICA_SETS, Client, Flags, PatchType, load
from podlife.informer import Informer
from tests.component.cli.commands import Running, started
from tests.component.cli.faulty_proxy import Answer, Cut, Fault, FaultyProxy, Hang, Seen, Truncate, proxied
from tests.kit.real_parts import Server, is_ready, kube_apiserver
from tests.kit.wait import until
from tests.real.conftest import require
from tests.real.cutting_proxy import CuttingProxy

MANY = 200
FLAGS = ["--controllers=replicaset", "--leader-elect=false"]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(parts_folder: Path) -> Iterator[Server]:
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "process-faults") as started_server:
        yield started_server


class Watcher:
    """Every pod of one namespace that there ever was."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.made: set[str] = set()
        self.gone: set[str] = set()
        self._news = asyncio.Event()
        self.pods: Informer[MetadataOnly] = Informer(client, PODS, view=MetadataOnly, namespace=namespace)
        self.pods.add_handler(self)

    def on_add(self, pod: MetadataOnly) -> None:
        self.made.add(pod.metadata.uid)
        self._news.set()

    def on_update(self, old: MetadataOnly, new: MetadataOnly) -> None:
        self.made.add(new.metadata.uid)

    def on_delete(self, pod: MetadataOnly) -> None:
        self.gone.add(pod.metadata.uid)

    async def more_than(self, count: int) -> None:
        """Back at once when there are more."""
        async with asyncio.timeout(180):
            while len(self.made) <= count:
                self._news.clear()
                await self._news.wait()

    async def make(self, replicas: int) -> None:
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
        await self.client.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, self.namespace)

    async def scale(self, replicas: int) -> None:
        await self.client.scale(REPLICA_SETS, "web", self.namespace, replicas)

    async def touch(self, number: int) -> None:
        """Something changes that makes the controller look again."""
        patch = {"metadata": {"annotations": {"touched": str(number)}}}
        await self.client.patch(REPLICA_SETS, "web", patch, self.namespace, type=PatchType.MERGE)

    async def has_status(self, replicas: int) -> bool:
        replica_set = await self.client.get(REPLICA_SETS, "web", self.namespace)
        return bool((replica_set.get("status") or {}).get("replicas") == replicas)

    async def settled(self, replicas: int) -> None:
        """Until the status says so; then exactly so many have ever been."""
        await until(lambda: self.has_status(replicas))
        pods = (await self.client.list_all(PODS, self.namespace)).items
        await until(lambda: {pod["metadata"]["uid"] for pod in pods} <= self.made)
        assert (len(pods), len(self.made), len(self.gone)) == (replicas, replicas, 0)


@asynccontextmanager
async def watching(server: Server) -> AsyncIterator[Watcher]:
    async with (
        Client.connect(load(Flags(kubeconfig=str(server.kubeconfig)), {})) as client,
        asyncio.TaskGroup() as group,
    ):
        namespace = f"faults-{next(_NUMBERS)}"
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        watcher = Watcher(client, namespace)
        task = group.create_task(watcher.pods.run())
        assert await watcher.pods.wait_for_sync(seconds=120)
        yield watcher
        await client.delete(REPLICA_SETS, "web", namespace)
        await cancel_and_wait(task)


@asynccontextmanager
async def controlling(*flags: str) -> AsyncIterator[Running]:
    async with started("controllers", "run", *FLAGS, *flags) as running:
        await running.wait_for("running: replicaset-controller")
        yield running


def admin(server: Server) -> list[str]:
    return ["--kubeconfig", str(server.kubeconfig)]


async def test_killed_at_many_moments_and_started_again_it_makes_no_pod_too_many(server: Server) -> None:
    killed_at: list[int] = []
    passed = most = 0

    def hold_back(seen: Seen) -> Fault | None:
        nonlocal passed
        if not is_creation(seen):
            return None
        if passed >= most:
            return Hang()
        passed += 1
        return None

    async with watching(server) as watcher, faulty(server) as proxy:
        proxy.fault = hold_back
        through = ["--server", proxy.url, "--token", server.tokens["admin"]]
        await watcher.make(MANY)
        # First where it has to wait for us, so that it is in the middle however fast it is; then anywhere.
        ways = [(least, through) for least in (0, 3, 6, 9, 12)]
        ways += [(least, admin(server)) for least in (25, 40, 60, 85, 110, 150)]
        for least, way in ways:
            most = least + 3
            async with started("controllers", "run", *FLAGS, *way) as run:
                await run.wait_for("running: replicaset-controller")
                await watcher.more_than(least)
                await run.end(signal.SIGKILL)
            killed_at.append(len(watcher.made))
            assert len(watcher.made) <= MANY
        async with controlling(*admin(server)) as run:
            await watcher.settled(MANY)
            assert (await run.end()).code == 0
    assert len({count for count in killed_at if 0 < count < MANY}) >= 5, killed_at


@contextmanager
def _restarted(command: list[bytes], log: Path) -> Iterator[None]:
    """The API server again, on its old port and over its old data."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.kill()
        process.wait(60)


async def test_the_api_server_killed_in_the_middle_and_started_again(
    parts_folder: Path, tmp_path: Path
) -> None:
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "killed-server") as server, ExitStack() as stack:
        command = Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")[:-1]
        async with watching(server) as watcher, controlling(*admin(server)) as run:
            await watcher.make(MANY)
            await watcher.more_than(20)
            os.kill(server.pid, signal.SIGKILL)
            await asyncio.sleep(1)
            stack.enter_context(_restarted(command, tmp_path / "again.log"))
            await until(lambda: is_ready(server))
            await watcher.settled(MANY)
            assert (await run.end()).code == 0


@asynccontextmanager
async def faulty(server: Server) -> AsyncIterator[FaultyProxy]:
    """A relay before the server that can be told what to do to every single request."""
    tls = ssl.create_default_context(cafile=str(server.ca_file))
    tls.check_hostname = False

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        return aiohttp.ClientSession(
            server.url,
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"Authorization": f"Bearer {server.tokens['admin']}"},
        )

    async with proxied(session) as proxy:
        yield proxy


def is_pod_watch(seen: Seen) -> bool:
    return seen.is_watch and seen.path == "/api/v1/pods"


def is_creation(seen: Seen) -> bool:
    return seen.method == "POST" and seen.path.endswith("/pods")


async def test_connections_cut_again_and_again_never_make_it_create_twice(server: Server) -> None:
    async with watching(server) as watcher, CuttingProxy(server.port) as proxy:
        through = ["--server", f"https://127.0.0.1:{proxy.port}", *admin(server)]
        async with controlling(*through) as run:
            await watcher.make(MANY)
            for number in range(1, 9):
                await watcher.more_than(number * 20)
                before = proxy.connections
                proxy.cut()
                await until(lambda before=before: proxy.connections > before)
            await watcher.settled(MANY)
            assert (await run.end()).code == 0


GONE = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}'


@pytest.mark.parametrize("fault", [Truncate(), Cut(), Answer(410, GONE)], ids=["truncated", "cut", "410"])
async def test_a_watch_of_pods_that_breaks_never_makes_it_create_twice(server: Server, fault: Fault) -> None:
    broken = 0

    def break_every_other(seen: Seen) -> Fault | None:
        nonlocal broken
        if is_pod_watch(seen) and broken < 8:
            broken += 1
            return fault if broken % 2 else None
        return None

    async with watching(server) as watcher, faulty(server) as proxy:
        proxy.fault = break_every_other
        await watcher.make(MANY)
        async with controlling("--server", proxy.url, "--token", server.tokens["admin"]) as run:
            await watcher.settled(MANY)
            assert (await run.end()).code == 0
    assert broken


async def test_a_watch_of_pods_that_falls_silent_never_makes_it_create_twice(server: Server) -> None:
    is_silent = False
    async with watching(server) as watcher, faulty(server) as proxy:
        proxy.holds = lambda seen: is_silent and is_pod_watch(seen)
        await watcher.make(50)
        async with controlling("--server", proxy.url, "--token", server.tokens["admin"]) as run:
            await watcher.settled(50)
            is_silent = True
            await watcher.scale(MANY)
            await watcher.more_than(MANY - 1)
            for number in range(20):
                await watcher.touch(number)
                await asyncio.sleep(0.1)
                assert len(watcher.made) == MANY
            is_silent = False
            await watcher.settled(MANY)
            assert (await run.end()).code == 0


async def test_creations_whose_answers_are_lost_are_not_made_again(server: Server) -> None:
    """The server has made the pod, and whoever asked for it does not know."""
    numbers = itertools.count(1)

    def lose_some(seen: Seen) -> Fault | None:
        return Cut(after=True) if is_creation(seen) and next(numbers) % 25 == 0 else None

    async with watching(server) as watcher, faulty(server) as proxy:
        proxy.fault = lose_some
        await watcher.make(MANY)
        async with controlling("--server", proxy.url, "--token", server.tokens["admin"]) as run:
            await watcher.settled(MANY)
            assert (await run.end()).code == 0
