"""States of a cluster as data, how one is built on a server, and how what is left of it is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from podlife.api.codec import format_time
from podlife.client import NODES, PODS, Client
from podlife.clock import SystemClock
from tests.real.podgc import cluster
from tests.real.podgc.cluster import Object

LONG_AGO = "2020-01-01T00:00:00Z"
_AT_ONCE = 16


@dataclass(frozen=True)
class PodState:
    """`node` is a name within the state; `second` orders creation: pods of a later one are younger."""

    name: str
    phase: str = "Running"
    node: str = ""
    reason: str = ""
    conditions: tuple[Object, ...] = ()
    is_held: bool = False
    deleted_with_grace: int | None = None
    namespace: str = ""
    second: int = 0


@dataclass(frozen=True)
class NodeState:
    name: str
    ready: str = "True"
    taints: tuple[Object, ...] = ()


@dataclass(frozen=True)
class State:
    """`then` is done after the first pass of a collector."""

    name: str
    pods: tuple[PodState, ...]
    nodes: tuple[NodeState, ...] = ()
    then: Callable[[Client, State], Awaitable[None]] | None = None

    def namespace_of(self, pod: PodState) -> str:
        return f"{self.name}-{pod.namespace}" if pod.namespace else self.name

    def node_name(self, name: str) -> str:
        return f"{self.name}-{name}" if name else ""

    @property
    def namespaces(self) -> set[str]:
        return {self.namespace_of(pod) for pod in self.pods}


@dataclass(frozen=True)
class World:
    """States that a collector is given together. A threshold counts all pods there are: such a state is alone.

    With `has_orphans` a collector is let run for longer than quarantine lasts."""

    name: str
    states: tuple[State, ...]
    threshold: int = 0
    has_orphans: bool = False


async def build(client: Client, world: World) -> None:
    for state in world.states:
        await _build(client, state)


async def _build(client: Client, state: State) -> None:
    for namespace in state.namespaces:
        await cluster.make_namespace(client, namespace)
    for node in state.nodes:
        await cluster.make_node(client, state.node_name(node.name), ready=node.ready, taints=node.taints)
    last_created = ""
    for _, pods in groupby(sorted(state.pods, key=lambda pod: pod.second), key=lambda pod: pod.second):
        # The server writes the time of creation itself, in whole seconds.
        while format_time(SystemClock().now()) <= last_created:
            await asyncio.sleep(0.02)
        made = await _for_all(pods, lambda pod: _make(client, state, pod))
        last_created = max(pod["metadata"]["creationTimestamp"] for pod in made)


async def _make(client: Client, state: State, pod: PodState) -> Object:
    status: Object = {"phase": pod.phase or None}
    if pod.reason:
        status["reason"] = pod.reason
    if pod.conditions:
        status["conditions"] = list(pod.conditions)
    return await cluster.make_pod(
        client,
        pod.name,
        state.namespace_of(pod),
        node=state.node_name(pod.node),
        status=status,
        is_held=pod.is_held,
        deleted_with_grace=pod.deleted_with_grace,
    )


async def _for_all(items: Iterable[Any], work: Callable[[Any], Awaitable[Any]]) -> list[Any]:
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(item: Any) -> Any:
        async with turn:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))


async def clear(client: Client) -> None:
    """No pods and no nodes."""
    pods = [pod["metadata"] for pod in (await client.list_all(PODS)).items]
    await _for_all(pods, lambda pod: cluster.remove_pod(client, pod["name"], pod["namespace"]))
    for node in (await client.list_all(NODES)).items:
        await client.delete(NODES, node["metadata"]["name"])


async def read(client: Client, world: World) -> dict[str, Object]:
    """By state: the pods that are left, each as far as a collector can have changed it."""
    pods = (await client.list_all(PODS)).items
    return {
        state.name: {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": _shown(pod)
            for pod in pods
            if pod["metadata"]["namespace"] in state.namespaces
        }
        for state in world.states
    }


def _shown(pod: Object) -> Object:
    """Without what must differ. A time is either the one that was given to the pod, or it was written since."""
    metadata, status = pod["metadata"], pod["status"]
    kept = ("generation", "deletionGracePeriodSeconds", "finalizers")
    conditions = status.get("conditions", ())
    return {
        **{name: metadata[name] for name in kept if name in metadata},
        "isTerminating": "deletionTimestamp" in metadata,
        "status": {**status, "conditions": {each["type"]: _timeless(each) for each in conditions}},
        "conditionOrder": [each["type"] for each in conditions],
    }


def _timeless(condition: Object) -> Object:
    time = condition.get("lastTransitionTime")
    if time is None:
        return condition
    return {**condition, "lastTransitionTime": time if time == LONG_AGO else "<written since>"}
