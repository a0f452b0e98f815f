"""Creates the simulation's own pods, bound to its nodes, and deletes them.

They are labelled with their run, so that they can be deleted even after a crash; nothing else is touched, and every
delete carries a UID precondition.
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
# An upper bound: the client's limiter decides how many requests are in flight.
_AT_ONCE = 32

T = TypeVar("T")


async def create_pods(
    client: Client,
    namespace: str,
    run: str,
    nodes: Sequence[str],
    count: int,
    requested: Callable[[str, str], None],
) -> None:
    """Calls `requested` with namespace and name right before each pod is created."""

    async def create(number: int) -> None:
        pod = _pod(f"{run}-{number}", run, nodes[number % len(nodes)])
        requested(namespace, pod["metadata"]["name"])
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
            # It ignores taints, and needs no access to the API server.
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }


async def delete_pods(client: Client, namespace: str, run: str) -> int:
    """Delete all pods of a run without grace period, and return their number."""
    selection = ListOptions(label_selector=f"{RUN_LABEL}={run}", metadata_only=True)
    pods = (await client.list_all(PODS, namespace, options=selection)).items
    await _each(pods, lambda pod: _delete(client, PODS, pod, namespace))
    return len(pods)


async def delete_nodes(client: Client, nodes: Iterable[tuple[str, str]]) -> None:
    """Delete nodes, given by name and UID, and their leases."""
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
        # Already deleted, or replaced by another object of that name.
        return


async def _each(items: Iterable[T], do: Callable[[T], Awaitable[None]]) -> None:
    remaining = iter(items)

    async def work() -> None:
        for item in remaining:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())
