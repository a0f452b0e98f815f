"""A cluster in which the out-of-service controller runs beside all the others, and a fence that a test plays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from podlife.client import EVENTS, NODES
from podlife.controller import ControlPlane
from podlife.nodehealth.out_of_service import (
    FenceAnswer,
    FenceResult,
    FenceSubject,
    OutOfServiceController,
    OutOfServiceSettings,
    Portion,
)
from podlife.nodehealth.out_of_service.views import ANNOTATION
from podlife.testing import DEFAULT, Cluster, ClusterNodeSpec
from tests.component.stories.objects import taints

NAME = "out-of-service"
TAINT = "out-of-service:NoExecute"
# In small clusters most guards would stop everything; and short, since every minute of a cluster takes its time.
LAX = OutOfServiceSettings(
    after_seconds=60.0, cool_down_seconds=120.0, most=Portion(percent=50), min_healthy=Portion(number=1)
)
# Who else has a part in it.
_OTHERS = ("node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller")


class Fence:
    """Says of each node what the test says; a node that is named nowhere lives."""

    kind = "command"
    name = "command fence"

    def __init__(self, *dead: str) -> None:
        self.dead = set(dead)
        self.hanging_seconds = 0.0
        # When, and about whom.
        self.asked: list[tuple[float, FenceSubject]] = []

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        self.asked.append((asyncio.get_running_loop().time(), subject))
        await asyncio.sleep(self.hanging_seconds)
        if subject.name in self.dead:
            return FenceAnswer(self.name, FenceResult.DEAD)
        return FenceAnswer(self.name, FenceResult.NOT_DEAD, "exit code 1")


class Making:
    """Makes the controller, and keeps the last one that was made."""

    def __init__(self, settings: OutOfServiceSettings, *fences: Fence) -> None:
        self.settings = settings
        self.fences = fences
        self.last: OutOfServiceController | None = None

    def __call__(self, plane: ControlPlane) -> OutOfServiceController:
        self.last = OutOfServiceController(plane, checks=self.fences, settings=self.settings)
        return self.last

    @property
    def controller(self) -> OutOfServiceController:
        assert self.last is not None
        return self.last


def specs(count: int) -> tuple[ClusterNodeSpec, ...]:
    return tuple(ClusterNodeSpec(f"n{number}") for number in range(1, count + 1))


def cluster_with(making: Making, nodes: int = 3, *, others: Sequence[str] = _OTHERS) -> Cluster:
    return Cluster(nodes=specs(nodes), controllers={**{name: DEFAULT[name] for name in others}, NAME: making})


async def node(cluster: Cluster, name: str) -> Any:
    return await cluster.client.get(NODES, name)


async def nodes_out(cluster: Cluster) -> list[str]:
    """Those with the taint."""
    found = (await cluster.client.list(NODES)).items
    return sorted(each["metadata"]["name"] for each in found if TAINT in taints(each))


async def annotation(cluster: Cluster, name: str) -> str | None:
    found = (await node(cluster, name))["metadata"].get("annotations") or {}
    return found.get(ANNOTATION)


async def events_of(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    """What was told of a node by this controller, in order: reason and message."""
    found = (await cluster.client.list(EVENTS, "default")).items
    told = [
        each
        for each in found
        if each["involvedObject"]["name"] == name and each["reason"].startswith("OutOfService")
    ]
    told.sort(key=lambda each: (each["firstTimestamp"], each["metadata"]["resourceVersion"]))
    return [(each["reason"], each["message"]) for each in told]
