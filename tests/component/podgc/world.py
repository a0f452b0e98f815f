"""A cluster in the test's own process for collectors: our API server on a memory store, no socket, virtual time.

The clock follows the loop's time, so that one jump moves both. `Faults` stands between a client and the server and
does to requests what a test asks for.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from podlife.api.codec import Object, decode_object, format_time
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator, TokenFile, format_tokens
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.storage import Key, MemoryStore, Put
from podlife.client import NODES, PODS, Client, DeleteOptions, InProcessTransport, PatchType
from podlife.errors import NotFoundError
from podlife.events import Recorder
from podlife.podgc import Collector, GcSession, PreDeleteStep, Settings
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import refusal

NODE = "node"
GONE_NODE = "deleted"
START = datetime(2030, 1, 1, tzinfo=UTC)
TAINT = "node.kubernetes.io/out-of-service"

Fault = Callable[[Request], Awaitable[Response | None]]


def answering(code: int, reason: str = "") -> Fault:
    """A fault: this answer, whatever was asked."""

    async def answer(request: Request) -> Response:
        if reason:
            return refusal(code, reason)
        return Response(code, b'{"kind":"Status","apiVersion":"v1","status":"Failure"}')

    return answer


def delaying(seconds: float) -> Fault:
    """A fault: the request gets through later."""

    async def delay(request: Request) -> None:
        await asyncio.sleep(seconds)

    return delay


def calling(action: Callable[[], None]) -> Fault:
    """A fault: the request gets through after this."""

    async def call(request: Request) -> None:
        action()

    return call


class Faults:
    """A handler in front of the server's. It notes every write, and asks `faults` before a request gets through."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.requests: list[Request] = []
        self._faults: list[tuple[str, re.Pattern[str], Fault]] = []

    def put(self, method: str, path: str, fault: Fault) -> None:
        """Ask `fault` about requests with this method whose path matches; what it gives is the answer."""
        self._faults.append((method, re.compile(path), fault))

    def clear(self) -> None:
        self._faults.clear()

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        for method, path, fault in self._faults:
            if request.method == method and path.search(request.path):
                answer = await fault(request)
                if answer is not None:
                    return answer
        return await self._handler(request)

    def sent(self, method: str, name: str = "") -> list[Request]:
        return [each for each in self.requests if each.method == method and name in each.path]


def now() -> float:
    """The loop's time: seconds since the world began."""
    return asyncio.get_running_loop().time()


class World:
    """What a test does to the cluster (as an administrator), and sees of it. Collectors talk through `faults`."""

    def __init__(self, handler: Handler, store: MemoryStore, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.clock = LoopClock()
        self.faults = Faults(handler)
        self.admin = Client(InProcessTransport(handler, headers=headers))
        self.client = Client(InProcessTransport(self.faults, headers=headers), timeout_seconds=10)
        self._store = store
        self._created = 0

    async def pod(
        self,
        name: str,
        *,
        phase: str = "Running",
        node: str = NODE,
        reason: str = "",
        is_terminating: bool = False,
        namespace: str = "default",
        finalizers: tuple[str, ...] = (),
        owner: Object | None = None,
        grace_seconds: int = 30,
        conditions: list[Object] | None = None,
        labels: dict[str, str] | None = None,
    ) -> Object:
        """A pod that is one hour younger than the one before it."""
        metadata: Object = {"name": name, "finalizers": list(finalizers), "labels": labels or {}}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        spec: Object = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        await self.admin.create(PODS, {"metadata": metadata, "spec": spec}, namespace)
        self._created += 1
        created = format_time(START - timedelta(days=30) + timedelta(hours=self._created))
        changes: Object = {"creationTimestamp": created}
        if is_terminating:
            changes["deletionTimestamp"] = format_time(START + timedelta(seconds=grace_seconds))
            changes["deletionGracePeriodSeconds"] = grace_seconds
        status = {"phase": phase, "reason": reason, "conditions": conditions or []}
        return await self.plant(
            name, namespace, metadata=changes, status={key: value for key, value in status.items() if value}
        )

    async def pods(self, *names: str, **how: Any) -> None:
        """Pods that are alike, the first the oldest."""
        for name in names:
            await self.pod(name, **how)

    async def plant(self, name: str, namespace: str = "default", **parts: Object) -> Object:
        """Change the stored pod behind the server's back, where no request could."""
        key = Key("pods", namespace, name)
        record = self._store.get(key)
        assert record is not None
        obj = decode_object(record.value)
        for part, values in parts.items():
            obj[part] = values if part == "status" else {**obj.get(part, {}), **values}
        await self._store.commit(Put(key, encoder(obj), expected=record.revision))
        return await self.admin.get(PODS, name, namespace)

    async def node(
        self, name: str = NODE, *, ready: str = "True", taint_effect: str = "", value: str = ""
    ) -> Object:
        spec: Object = {}
        if taint_effect:
            spec["taints"] = [{"key": TAINT, "effect": taint_effect, "value": value}]
        created = await self.admin.create(NODES, {"metadata": {"name": name}, "spec": spec})
        if ready:
            await self.set_ready(name, ready)
        return created

    async def set_ready(self, name: str, status: str) -> None:
        conditions = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        await self.admin.patch(NODES, name, conditions, subresource="status", type=PatchType.STRATEGIC)

    async def taint(self, name: str, effect: str = "NoExecute") -> None:
        await self.admin.patch(NODES, name, {"spec": {"taints": [{"key": TAINT, "effect": effect}]}})

    async def delete_node(self, name: str) -> None:
        await self.admin.delete(NODES, name)

    async def get(self, name: str, namespace: str = "default") -> Object:
        return await self.admin.get(PODS, name, namespace)

    async def is_gone(self, name: str, namespace: str = "default") -> bool:
        try:
            await self.get(name, namespace)
        except NotFoundError:
            return True
        return False

    async def left(self) -> list[str]:
        """The names of all pods there are."""
        page = await self.admin.list(PODS)
        return sorted(pod["metadata"]["name"] for pod in page.items)

    async def replace(self, name: str, **how: Any) -> Object:
        """Delete the pod and make another under its name."""
        await self.admin.delete(PODS, name, "default", options=DeleteOptions(grace_period_seconds=0))
        return await self.pod(name, **how)

    def patched(self) -> list[str]:
        return sorted(request.path.split("/")[-2] for request in self.faults.sent("PATCH"))

    def recorder(self) -> Recorder:
        return Recorder(self.admin, "podlife-gc", clock=self.clock)

    def collector(
        self, *, steps: Sequence[PreDeleteStep] = (), recorder: Recorder | None = None, **settings: Any
    ) -> Collector:
        made = Settings(**settings)
        return Collector(self.client, made, clock=self.clock, recorder=recorder, steps=steps)

    def session(self, **settings: Any) -> GcSession:
        return GcSession(self.client, Settings(**settings), clock=self.clock)


@asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[World]:
    tokens = folder / "tokens.csv"
    tokens.write_text(format_tokens([("admin-token", ADMIN)]))
    store = MemoryStore()
    handler = assemble(store, clock=LoopClock(), authenticator=Authenticator(TokenFile(tokens)))
    await create_system_namespaces(handler.registry, ADMIN)
    try:
        yield World(handler, store, "admin-token")
    finally:
        await store.close()


def in_world(test: Callable[..., Awaitable[None]], *, has_node: bool = False) -> Callable[..., None]:
    """Run a test in a world of its own, under virtual time."""
    own = [each for each in inspect.signature(test).parameters.values() if each.name != "world"]
    has_folder = any(each.name == "tmp_path" for each in own)

    @functools.wraps(test)
    async def run(tmp_path: Path, **parameters: Any) -> None:
        if has_folder:
            parameters["tmp_path"] = tmp_path
        async with serve(tmp_path) as world:
            if has_node:
                await world.node()
            await test(world=world, **parameters)

    # pytest reads from the signature what a test wants: the folder, and the test's own parameters.
    folder = [] if has_folder else [inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    wrapped = virtual_time(run)
    wrapped.__signature__ = inspect.Signature([*folder, *own])  # type: ignore[attr-defined]
    return wrapped


in_cluster = functools.partial(in_world, has_node=True)
"""The same, in a world that has a node."""


@asynccontextmanager
async def running(collector: Collector) -> AsyncIterator[asyncio.Task[None]]:
    """The collector at work for as long as the block lasts; whatever ended it before that is raised."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collector.run(), name="collector")
        yield task
        task.cancel()
