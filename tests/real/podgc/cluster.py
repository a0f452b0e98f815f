"""What a test does to a real cluster, and sees of it, where a collector is at work: nodes, and pods in any state."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from podlife.aio import cancel_and_wait
from podlife.client import NAMESPACES, NODES, PODS, Client, DeleteOptions, Flags, PatchType, load
from podlife.errors import AlreadyExistsError, NotFoundError
from podlife.podgc import Collector, Settings
from tests.kit.gc_states import States
from tests.kit.real_parts import ROOT, Server, run_kubectl
from tests.kit.wait import until as until_so

Object = dict[str, Any]
T = TypeVar("T")

FINALIZER = "test.podlife.io/held"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# The service account of `deploy/gc`.
SYSTEM, ACCOUNT = "podlife-system", "podlife-gc"


def connect(server: Server) -> Client:
    return Client.connect(load(Flags(kubeconfig=str(server.kubeconfig)), {}))


def install(server: Server, folder: Path, *components: str) -> None:
    """Apply the manifests as a user does, with these components switched on."""
    shutil.copytree(ROOT / "deploy" / "gc", folder)
    if components:
        with (folder / "kustomization.yaml").open("a") as file:
            # What `kustomize edit add component NAME` does.
            file.write("\n".join(["components:", *(f"  - {name}" for name in components), ""]))
    result = run_kubectl("apply", "-k", str(folder), kubeconfig=server.kubeconfig)
    assert result.returncode == 0, result.stderr
    assert "would violate" not in result.stderr


async def make_namespace(client: Client, name: str) -> None:
    try:
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    except AlreadyExistsError:
        return


def taint(effect: str = "NoExecute", value: str = "") -> Object:
    return {"key": OUT_OF_SERVICE, "effect": effect, "value": value}


async def make_node(client: Client, name: str, *, ready: str = "True", taints: Sequence[Object] = ()) -> None:
    """`ready` is the status of the condition; empty, there is none."""
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    node = {
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {"conditions": conditions},
    }
    await client.create(NODES, node)


async def make_pod(
    client: Client,
    name: str,
    namespace: str,
    *,
    node: str = "",
    status: Object | None = None,
    is_held: bool = False,
    deleted_with_grace: int | None = None,
    container: Object | None = None,
) -> Object:
    """A pod, given its status as a node's agent would, then deleted as a user would."""
    spec: Object = {"containers": [{"name": "c", "image": "i", **(container or {})}]}
    if node:
        spec["nodeName"] = node
    metadata: Object = {"name": name, "finalizers": [FINALIZER] if is_held else []}
    pod = await client.create(PODS, {"metadata": metadata, "spec": spec}, namespace)
    if status is not None:
        patch = json.loads(json.dumps({"status": status}))
        pod = await client.patch(PODS, name, patch, namespace, type=PatchType.MERGE, subresource="status")
    if deleted_with_grace is not None:
        options = DeleteOptions(grace_period_seconds=deleted_with_grace)
        pod = await client.delete(PODS, name, namespace, options=options)
    return pod


async def find_pod(client: Client, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(PODS, name, namespace)
    except NotFoundError:
        return None


async def until(
    look: Callable[[], Awaitable[T]], is_done: Callable[[T], bool], *, seconds: float = 120.0
) -> T:
    """Look until what is seen will do, and give it; the last of it is in the failure."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not is_done(seen := await look()):
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not so after {seconds:g} s; at last: {seen}")
        await asyncio.sleep(0.05)
    return seen


@asynccontextmanager
async def running(client: Client, settings: Settings) -> AsyncIterator[Collector]:
    """Our collector at work for as long as the block lasts. It must not have ended by itself."""
    collector = Collector(client, settings)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collector.run())
        yield collector
        assert not task.done()
        await cancel_and_wait(task)


async def look_again(collector: Collector, times: int = 3) -> None:
    """Wait until the collector has looked at everything some times more: what it wanted to do is done."""

    async def looks() -> int:
        return collector.metrics.pass_seconds.total

    enough = await looks() + times
    await until(looks, lambda total: total >= enough)


async def until_left(states: States, names: set[str]) -> None:
    async def is_left() -> bool:
        return await states.names() == names

    await until_so(is_left)


async def remove_pod(client: Client, name: str, namespace: str) -> None:
    """Without grace, and with its finalizers taken off before."""
    try:
        await client.patch(PODS, name, {"metadata": {"finalizers": None}}, namespace)
        await client.delete(PODS, name, namespace, options=DeleteOptions(grace_period_seconds=0))
    except NotFoundError:
        return
