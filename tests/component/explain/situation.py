"""What a situation of the catalogue is, and what most of them are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife.client import PODS, DeleteOptions
from podlife.errors import NotFoundError
from podlife.podgc import Settings
from podlife.podgc.policy import Policy
from podlife.testing import Behaviour, Cluster, pod_gc
from podlife.testing.controllers import Make as MakeController
from podlife.testing.controllers import chosen
from tests.component.stories.objects import condition

Object = dict[str, Any]
Make = Callable[[Cluster], Awaitable[None]]
Holds = Callable[[Cluster], Awaitable[bool]]


@dataclass(frozen=True)
class Situation:
    """`values` are what a person fills in; `rounds` how often something is in the way."""

    name: str
    cause: str
    make: Make
    is_unblocked: Holds
    controllers: tuple[str, ...] = ()
    # What podlife's collector decides by; with a policy it is there, besides those.
    policy: Policy | None = None
    nodes: int = 1
    values: dict[str, str] = field(default_factory=dict)
    rounds: int = 1
    is_stuck: bool = True
    pod: str = "web"
    # Who has to be named as acting next, if anybody.
    acts: str = ""
    # False where only time tells whether it is.
    is_checked_before: bool = True

    @property
    def settings(self) -> Settings | None:
        return None if self.policy is None else Settings(policy=self.policy)

    @property
    def makes(self) -> Mapping[str, MakeController]:
        others = chosen(self.controllers)
        return others if self.settings is None else {**others, "podlife-gc": pod_gc(self.settings)}


async def found(cluster: Cluster, name: str = "web") -> Object | None:
    try:
        return await cluster.client.get(PODS, name, "default")
    except NotFoundError:
        return None


async def is_gone(cluster: Cluster) -> bool:
    return await found(cluster) is None


async def is_ready(cluster: Cluster) -> bool:
    obj = await found(cluster)
    return obj is not None and condition(obj, "Ready").get("status") == "True"


async def runs(cluster: Cluster) -> bool:
    return ("web", "main") in {
        (each.pod, each.name) for node in cluster.nodes.values() for each in node.containers
    }


async def create(cluster: Cluster, obj: Object) -> None:
    await cluster.client.create(PODS, obj, "default")
    await cluster.settled()


async def delete(cluster: Cluster, name: str = "web") -> None:
    uid = (await cluster.client.get(PODS, name, "default"))["metadata"]["uid"]
    await cluster.client.delete(PODS, name, "default", options=DeleteOptions(uid=uid))


def with_metadata(obj: Object, **fields: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def with_spec(obj: Object, **fields: Any) -> Object:
    return {**obj, "spec": {**obj["spec"], **fields}}


def created(
    obj: Object, behaviour: Behaviour | None = None, *, image: str = "bad", seconds: float = 60
) -> Make:
    """The pod, and a while after it."""

    async def make(cluster: Cluster) -> None:
        if behaviour is not None:
            cluster.behave(behaviour, image=image)
        await cluster.client.create(PODS, obj, "default")
        await cluster.advance(seconds=seconds)

    return make
