"""Pods that a simulation creates itself, bound to its nodes when they are created, and their removal.

They carry the name of their run, so they are found and deleted however the run ended; nothing else is touched, and
every delete carries a UID precondition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from podlife.api.codec import Object
from podlife.client import LEASES, NODES, PODS, Client, DeleteOptions, ListOptions, Ref
from podlife.errors import ConflictError, NotFoundError

RUN_LABEL = "sim.podlife.dev/run"
_LEASE_NAMESPACE = "kube-node-lease"
# The client's limiter decides how many requests are really under way; whoever waits there has not been created yet.
_AT_ONCE = 32

T = TypeVar("T")


async def create_pods(
    client: Client,
    namespace: str,
    run: str,
    nodes: Sequence[str],
    count: int,
    asked: Callable[[str, str], None],
) -> None:
    """`asked` is told of each, by namespace and name, right before it is created."""

    async def create(number: int) -> None:
        pod = _pod(f"{run}-{number}", run, nodes[number % len(nodes)])
        asked(namespace, pod["metadata"]["name"])
        await client.create(PODS, pod, namespace, view=None)

    await _each(range(count), create)


def _pod(name: str, run: str, node: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {RUN_LABEL: run, "app": "sim"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "app", "image": "sim:1"}],
            # It goes wherever it is put, and nobody in it speaks to the API server.
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }


async def delete_pods(client: Client, namespace: str, run: str) -> int:
    """All pods of a run, at once; answers how many there were."""
    selection = ListOptions(label_selector=f"{RUN_LABEL}={run}", metadata_only=True)
    found = (await client.list_all(PODS, namespace, options=selection)).items
    await _each(found, lambda pod: _delete(client, PODS, pod, namespace))
    return len(found)


async def delete_nodes(client: Client, nodes: Iterable[tuple[str, str]]) -> None:
    """Nodes by name and UID, and the leases that are theirs."""
    uids = dict(nodes)
    leases = (await client.list_all(LEASES, _LEASE_NAMESPACE)).items
    theirs = [each for each in leases if _owner(each) == uids.get(each["metadata"]["name"], "")]
    await _each(theirs, lambda lease: _delete(client, LEASES, lease, _LEASE_NAMESPACE))
    objects: list[Object] = [{"metadata": {"name": name, "uid": uid}} for name, uid in uids.items()]
    await _each(objects, lambda node: _delete(client, NODES, node, ""))


def _owner(lease: Object) -> str | None:
    owners = lease["metadata"].get("ownerReferences") or ()
    return next((str(each["uid"]) for each in owners if each["kind"] == "Node"), None)


async def _delete(client: Client, ref: Ref, obj: Object, namespace: str) -> None:
    metadata = obj["metadata"]
    options = DeleteOptions(grace_period_seconds=0, uid=metadata["uid"])
    try:
        await client.delete(ref, metadata["name"], namespace, options=options, metadata_only=True)
    except (NotFoundError, ConflictError):
        # Somebody else was faster, or it is another of that name: neither is ours any more.
        return


async def _each(items: Iterable[T], do: Callable[[T], Awaitable[None]]) -> None:
    remaining = iter(items)

    async def work() -> None:
        for item in remaining:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())
