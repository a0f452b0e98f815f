"""A cluster without agents of its own: nodes whose heartbeats a test starts and stops, and the node health controllers.

On the embedded server under virtual time. `History` has every change of nodes and pods with the time at which it was
seen, so that a test can say when and in which order something became so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import format_micro_time, format_time
from podlife.client import EVENTS, LEASES, NODES, PODS, Bookmark, Client, EventType, Ref
from podlife.clock import Clock
from podlife.controller import ControlPlane
from podlife.errors import NotFoundError
from podlife.nodehealth import NodeHealthSettings, NodeLifecycleController, TaintEvictionController
from podlife.testing import LoopClock
from podlife.wire import Handler, Request, Response
from tests.kit import objects
from tests.kit.embedded import Disturbance, connect, refusal, start, stream_of
from tests.workloads.runs import at_work

Object = dict[str, Any]

LEASE_NAMESPACE = "kube-node-lease"
HEARTBEAT_SECONDS = 10.0
ZONE = "topology.kubernetes.io/zone"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def now() -> float:
    return asyncio.get_running_loop().time()


class History:
    """What was seen of nodes and pods, and when."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.changes: list[tuple[float, str, str, Object]] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in (NODES, PODS):
                group.create_task(self._follow(ref))

    async def _follow(self, ref: Ref) -> None:
        async with aclosing(self._client.list_watch(ref)) as events:
            async for event in events:
                if not isinstance(event, Bookmark):
                    gone = {"gone": True} if event.type is EventType.DELETED else {}
                    self.changes.append(
                        (now(), ref.kind, event.object["metadata"]["name"], {**event.object, **gone})
                    )

    def first(self, kind: str, name: str, holds: Callable[[Object], object]) -> float | None:
        """When it first was so."""
        return next(
            (
                at
                for at, a_kind, a_name, obj in self.changes
                if (a_kind, a_name) == (kind, name) and holds(obj)
            ),
            None,
        )

    def states(self, kind: str, name: str, show: Callable[[Object], Any]) -> list[Any]:
        """What was shown of it, one after the other, without repetitions."""
        shown: list[Any] = []
        for _, a_kind, a_name, obj in self.changes:
            if (a_kind, a_name) == (kind, name) and (not shown or shown[-1] != show(obj)):
                shown.append(show(obj))
        return shown


def ready_status(node: Object) -> str | None:
    return condition(node, "Ready").get("status")


def condition(obj: Object, type_: str) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def taints(node: Object) -> list[str]:
    """As kubectl writes them."""
    found = (node.get("spec") or {}).get("taints") or ()
    return [f"{each['key'].removeprefix('node.kubernetes.io/')}:{each['effect']}" for each in found]


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


class Asked:
    """A way to the server that notes what was asked for, and may answer in the server's place."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str, str]] = []
        self.answer: Disturbance | None = None

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        self.requests.append((now(), request.method, request.path))
        if self.answer is not None:
            return await self.answer(request, to_server)
        return await to_server(request)

    def of(self, method: str, tail: str = "") -> list[float]:
        return [at for at, how, path in self.requests if how == method and path.endswith(tail)]

    def writes(self, part: str = "") -> list[tuple[str, str]]:
        return [
            (method, path)
            for _, method, path in self.requests
            if method != "GET" and part in path and "/events" not in path
        ]


class Line(Asked):
    """A way to the server on which watches can be cut (they end, and cannot be begun again) or stuck (nothing comes,
    and nothing says so), by the plural of what is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.cut: set[str] = set()
        self.stuck: set[str] = set()

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        plural = request.path.rpartition("/")[2]
        if plural in self.cut:
            self.requests.append((now(), request.method, request.path))
            return refusal(503)
        response = await super().__call__(request, to_server)
        if "watch" in request.query and response.status == 200:
            response.body = self._pass_on(plural, stream_of(response))
        return response

    async def _pass_on(self, plural: str, body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(body):
            while True:
                reading = spawn(_next(body), name=f"watch of {plural}", on_failure=lambda _: None)
                try:
                    while plural in self.stuck or not reading.done():
                        if reading.done():
                            await asyncio.sleep(0.25)
                        else:
                            await asyncio.wait((reading,), timeout=0.25)
                        if plural in self.cut:
                            return
                finally:
                    if not reading.done():
                        await cancel_and_wait(reading)
                if not (piece := reading.result()):
                    return
                yield piece


async def _next(body: AsyncGenerator[bytes, None]) -> bytes:
    return await anext(body, b"")


class World:
    """`prefix` stands before every name on the server, for those who share one with others."""

    def __init__(
        self,
        client: Client,
        server: Handler | None,
        history: History,
        *,
        clock: Clock | None = None,
        prefix: str = "",
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.client = client
        self._server = server
        self.history = history
        self.clock: Clock = clock or LoopClock()
        self.prefix = prefix
        self._heartbeat_seconds = heartbeat_seconds
        self._beating: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def server(self) -> Handler:
        assert self._server is not None
        return self._server

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[Self]:
        """Agents live in this block."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield self
            finally:
                await self.stop(*list(self._beating))

    # Nodes

    async def add_node(self, name: str, *, zone: str = "", beats: bool = True, **extra: Any) -> None:
        await self.create_node(name, zone=zone, **extra)
        await self.post(name)
        await self.renew(name)
        if beats:
            self.start(name)

    async def add_nodes(self, *names: str, silent: str = "") -> None:
        """These, and before them one whose agent says nothing more."""
        if silent:
            await self.add_node(silent, beats=False)
        for name in names:
            await self.add_node(name)

    async def create_node(self, name: str, *, zone: str = "", **extra: Any) -> None:
        """One that has said nothing yet; `extra` are its labels, and its spec."""
        labels = {**({ZONE: zone} if zone else {}), **extra.pop("labels", {})}
        metadata = {"name": self.prefix + name, "labels": labels}
        await self.client.create(NODES, {"metadata": metadata, "spec": extra})

    async def post(self, name: str, **statuses: str) -> None:
        """The agent posts its status: what it is not told to say otherwise is well."""
        said = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
        at = format_time(self.clock.now())
        node = await self.node(name)
        conditions = []
        for type_, status in {**said, **statuses}.items():
            known = condition(node, type_)
            since = known.get("lastTransitionTime") if known.get("status") == status else at
            conditions.append(
                objects.condition(
                    type_,
                    status,
                    reason="Agent",
                    message="says so",
                    lastHeartbeatTime=at,
                    lastTransitionTime=since or at,
                )
            )
        patch = {"status": {"conditions": conditions}}
        await self.client.patch(NODES, self.prefix + name, patch, subresource="status")

    async def renew(self, name: str) -> None:
        name = self.prefix + name
        spec = {"holderIdentity": name, "renewTime": format_micro_time(self.clock.now())}
        try:
            await self.client.patch(LEASES, name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFoundError:
            await self.client.create(LEASES, {"metadata": {"name": name}, "spec": spec}, LEASE_NAMESPACE)

    def start(self, name: str) -> None:
        """The agent renews its lease from now on."""
        assert self._group is not None
        self._beating[name] = self._group.create_task(self._beat(name))

    async def stop(self, *names: str) -> None:
        """The agents fall silent."""
        for name in names:
            await cancel_and_wait(self._beating.pop(name))

    async def _beat(self, name: str) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            await self.renew(name)

    async def node(self, name: str) -> Object:
        return dict(await self.client.get(NODES, self.prefix + name))

    async def taints(self, name: str) -> list[str]:
        return taints(await self.node(name))

    async def taint(self, name: str, *keys: str, effect: str = "NoExecute") -> None:
        """These, and no others."""
        wanted = [{"key": key, "effect": effect} for key in keys]
        await self.client.patch(NODES, self.prefix + name, {"spec": {"taints": wanted}})

    # Pods

    async def add_pod(
        self, name: str, node: str = "", *, tolerations: Iterable[Object] = (), is_ready: bool = True
    ) -> Object:
        spec: Object = {"containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
        if node:
            spec["nodeName"] = self.prefix + node
        pod = {"metadata": {"name": self.prefix + name}, "spec": spec}
        made: Object = await self.client.create(PODS, pod, "default")
        if is_ready:
            await self.say_ready(name)
        return made

    async def say_ready(self, name: str, status: str = "True") -> None:
        at = format_time(self.clock.now())
        ready = {"type": "Ready", "status": status, "lastTransitionTime": at}
        patch = {"status": {"phase": "Running", "conditions": [ready]}}
        await self.client.patch(PODS, self.prefix + name, patch, "default", subresource="status")

    async def pod(self, name: str) -> Object | None:
        try:
            return dict(await self.client.get(PODS, self.prefix + name, "default"))
        except NotFoundError:
            return None

    async def has_gone(self, name: str) -> bool:
        """Whether it was deleted, or is on its way out."""
        pod = await self.pod(name)
        return pod is None or is_terminating(pod)

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(EVENTS, "default")).items
        return [
            each["message"]
            for each in found
            if each["reason"] == reason
            for _ in range(each.get("count") or 1)
        ]

    # Controllers

    @asynccontextmanager
    async def at_work(
        self,
        settings: NodeHealthSettings | None = None,
        *,
        way: Disturbance | None = None,
        lifecycle: bool = True,
        eviction: bool = True,
    ) -> AsyncIterator[Controllers]:
        """The controllers, with a client of their own; they are cut off where the block ends."""
        async with connect(self.server, way) as client:
            plane = ControlPlane(client, clock=LoopClock(), flush_seconds=0.5)
            both = Controllers(
                NodeLifecycleController(plane, settings=settings) if lifecycle else None,
                TaintEvictionController(plane) if eviction else None,
            )
            for each in (both.of_lifecycle, both.of_eviction):
                if each is not None:
                    plane.add(each)
            async with at_work(plane.run):
                await asyncio.sleep(0.01)
                yield both


class Controllers:
    def __init__(
        self, lifecycle: NodeLifecycleController | None, eviction: TaintEvictionController | None
    ) -> None:
        self.of_lifecycle, self.of_eviction = lifecycle, eviction

    @property
    def lifecycle(self) -> NodeLifecycleController:
        assert self.of_lifecycle is not None
        return self.of_lifecycle

    @property
    def eviction(self) -> TaintEvictionController:
        assert self.of_eviction is not None
        return self.of_eviction


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    server = await start()
    async with connect(server) as client, connect(server) as watching:
        history = History(watching)
        async with at_work(history.run), World(client, server, history).beating() as made:
            yield made


def tolerates(key: str = "", seconds: int | None = None, **rest: str) -> Object:
    """A toleration of NoExecute; without a key, of everything."""
    toleration: Object = {
        "operator": "Exists",
        "effect": "NoExecute",
        **({"key": key} if key else {}),
        **rest,
    }
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}
