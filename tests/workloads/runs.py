"""Running scenarios: on a server that is there, with controllers that somebody has started."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.client import NAMESPACES, PODS, Client, Flags, Ref, WriteOptions, load
from podlife.clock import Clock, SystemClock
from podlife.controller import ControlPlane
from podlife.errors import ForbiddenError
from podlife.ownergc import OwnerGarbageCollector
from podlife.wire import Handler, Request, Response
from podlife.workloads import CONTROLLERS
from tests.kit.embedded import refusal
from tests.workloads.objects import labelled_pod
from tests.workloads.observatory import Observatory
from tests.workloads.scenario import Scenario
from tests.workloads.snapshot import Snapshot, take
from tests.workloads.world import Cluster, Quota, World

KUBE_CONTROLLERS = (
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
NEEDED = {
    "cronjob": ("cronjob-controller", "job-controller"),
    "daemonset": ("daemonset-controller",),
    "deployment": ("deployment-controller", "replicaset-controller"),
    "disruption": (
        "disruption-controller",
        "replicaset-controller",
        "deployment-controller",
        "replicationcontroller-controller",
        "statefulset-controller",
        "job-controller",
    ),
    "job": ("job-controller", "ttl-after-finished-controller"),
    "ownergc": ("replicaset-controller", "deployment-controller"),
    "replicaset": ("replicaset-controller",),
    "replicationcontroller": ("replicationcontroller-controller",),
    "statefulset": ("statefulset-controller",),
}
"""Which controllers a workload's scenarios need of ours, beside the collector of owned objects."""
RESOURCE_QUOTAS = Ref("", "v1", "resourcequotas", kind="ResourceQuota")
QUOTA = "quota"
NO_LIMIT = 100_000
# How many scenarios are under way at once.
AT_ONCE = 12
# How long a scenario that did not come out as it should may still come round.
_LATE_SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """Either what was left, or why it did not come so far."""

    snapshot: Snapshot | None = None
    error: BaseException | None = None


def connect(kubeconfig: Path) -> Client:
    return Client.connect(load(Flags(kubeconfig=str(kubeconfig)), {}))


@asynccontextmanager
async def at_work(run: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Something that runs until it is cancelled, for as long as the block lasts; if it ends, so does the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        yield
        await cancel_and_wait(task)


@asynccontextmanager
async def own_controllers(
    client: Client, clock: Clock, scenarios: Iterable[Scenario]
) -> AsyncIterator[ControlPlane]:
    """Those of ours at work that the scenarios need."""
    plane = ControlPlane(client, clock=clock)
    needed = {name for each in scenarios for name in NEEDED[each.workload]}
    for name, factory in CONTROLLERS.items():
        if name in needed:
            plane.add(factory(plane))
    plane.add(OwnerGarbageCollector(plane))
    async with at_work(plane.run):
        yield plane


@asynccontextmanager
async def observing(
    client: Client, quota: Quota, *, clock: Clock | None = None, quiet_seconds: float = 1.5
) -> AsyncIterator[Cluster]:
    seen = Observatory(client)
    async with at_work(seen.run):
        await seen.wait_for_sync()
        yield Cluster(client, clock or SystemClock(), seen, quota, quiet_seconds)


async def play(
    cluster: Cluster, scenario: Scenario, namespace: str, expected: Snapshot | None = None
) -> Snapshot:
    """What the scenario leaves. Where that is not what is expected, it has a little more time to become so."""
    await cluster.client.create(NAMESPACES, {"metadata": {"name": namespace}})
    world = World(cluster, namespace)
    async with at_work(world.node.run):
        await scenario.play(world)
        await world.settle()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LATE_SECONDS
        while True:
            news = cluster.seen.news(namespace)
            left = take(cluster.seen, namespace, scenario.ignoring)
            if expected is None or left == expected or loop.time() >= deadline:
                return left
            try:
                async with asyncio.timeout_at(deadline):
                    await news.wait()
            except TimeoutError:
                return left


async def play_all(
    cluster: Cluster, scenarios: Iterable[Scenario], expected: Mapping[str, Snapshot], suffix: str = ""
) -> dict[str, Outcome]:
    """Side by side, each in a namespace of its own; what becomes of one does not concern the others."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(scenario: Scenario) -> tuple[str, Outcome]:
        async with turns:
            try:
                left = await play(cluster, scenario, scenario.namespace(suffix), expected.get(str(scenario)))
            except Exception as error:  # noqa: BLE001 - it is the outcome
                return str(scenario), Outcome(error=error)
            return str(scenario), Outcome(left)

    return dict(await asyncio.gather(*map(one, scenarios)))


class KubeQuota:
    """A ResourceQuota whose status is written by hand, since nobody counts: kube-apiserver's admission goes by it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def refuse(self, namespace: str, limit: int) -> None:
        quota = {"metadata": {"name": QUOTA}, "spec": {"hard": {"pods": str(limit)}}}
        await self._client.create(RESOURCE_QUOTAS, quota, namespace)
        # The server goes by a cache of its own: it has to have seen that nothing is allowed, and then what is.
        await self._set(namespace, 0)
        await self.until_known(namespace, is_refused=True)
        if limit:
            await self._set(namespace, limit)
            await self.until_known(namespace, is_refused=False)

    async def allow(self, namespace: str) -> None:
        await self._set(namespace, NO_LIMIT)

    async def _set(self, namespace: str, limit: int) -> None:
        quota = await self._client.get(RESOURCE_QUOTAS, QUOTA, namespace)
        used = (quota.get("status") or {}).get("used") or {"pods": "0"}
        status = {"hard": {"pods": str(limit)}, "used": used}
        patch = {"status": status}
        await self._client.patch(RESOURCE_QUOTAS, QUOTA, patch, namespace, subresource="status")

    async def until_known(self, namespace: str, *, is_refused: bool) -> None:
        """Until the server goes by it."""
        probe = labelled_pod("probe", "probe")
        async with asyncio.timeout(120):
            while True:
                try:
                    await self._client.create(PODS, probe, namespace, options=WriteOptions(dry_run=True))
                    was_refused = False
                except ForbiddenError as error:
                    # Before its status is known, too, but with other words.
                    was_refused = "exceeded quota" in str(error)
                    if not was_refused:
                        continue
                if was_refused == is_refused:
                    return
                await asyncio.sleep(0.05)


class EmbeddedQuota:
    """The same answers on the way to the embedded server, which knows no quotas: a `Disturbance` for its client."""

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}
        self._used: dict[str, int] = {}

    async def refuse(self, namespace: str, limit: int) -> None:
        self._limits[namespace], self._used[namespace] = limit, 0

    async def allow(self, namespace: str) -> None:
        self._limits[namespace] = NO_LIMIT

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        parts = request.path.split("/")
        if request.method != "POST" or parts[-1] != "pods" or parts[-2] not in self._limits:
            return await to_server(request)
        namespace = parts[-2]
        limit, used = self._limits[namespace], self._used[namespace]
        if used >= limit:
            return _exceeded(json.loads(request.body)["metadata"], used, limit)
        self._used[namespace] += 1
        response = await to_server(request)
        if response.status >= 300:
            self._used[namespace] -= 1
        return response


def _exceeded(metadata: dict[str, str], used: int, limit: int) -> Response:
    # A name is made up before it is refused.
    name = metadata.get("name") or f"{metadata['generateName']}bcdfg"
    numbers = f"requested: pods=1, used: pods={used}, limited: pods={limit}"
    response = refusal(403, "Forbidden", details={"name": name, "kind": "pods"})
    assert isinstance(response.body, bytes)
    answer = json.loads(response.body)
    answer["message"] = f'pods "{name}" is forbidden: exceeded quota: {QUOTA}, {numbers}'
    return Response(403, json.dumps(answer).encode())
