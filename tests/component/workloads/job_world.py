"""A server with nodes and a Job controller that can be killed, and a census of its pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from podlife.apiserver.endpoints import ApiHandler
from podlife.client import JOBS, PODS, Bookmark, Client, EventType
from podlife.controller import ControlPlane
from podlife.testing import LoopClock
from podlife.workloads.job import JobController
from podlife.workloads.ttl_after_finished import TtlAfterFinishedController
from tests.kit.embedded import Disturbance, connect
from tests.workloads.node import exits
from tests.workloads.objects import Object, template
from tests.workloads.runs import EmbeddedQuota, at_work, observing
from tests.workloads.world import World

DONE = exits(0)
KEY = ("default", "work")
_THEN = {"lastProbeTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:00Z"}
ENDED = {
    "startTime": "2030-01-01T00:00:00Z",
    "conditions": [{"type": type_, "status": "True", **_THEN} for type_ in ("FailureTarget", "Failed")],
}


def job(**spec: Any) -> Object:
    return {"metadata": {"name": "work"}, "spec": {"template": template("w", restartPolicy="Never"), **spec}}


@asynccontextmanager
async def controlling(server: ApiHandler, disturb: Disturbance | None = None) -> AsyncIterator[JobController]:
    """A controller with a client of its own, killed at the end of the block."""
    plane = ControlPlane(connect(server, disturb), clock=LoopClock())
    controller = JobController(plane)
    plane.add(controller)
    plane.add(TtlAfterFinishedController(plane))
    async with at_work(plane.run):
        yield controller


@asynccontextmanager
async def world_of(server: ApiHandler) -> AsyncIterator[World]:
    """What users and nodes do, in the namespace `default`."""
    client = connect(server)
    async with observing(client, EmbeddedQuota(), clock=LoopClock(), quiet_seconds=5) as cluster:
        world = World(cluster, "default")
        async with at_work(world.node.run):
            yield world


@dataclass
class Census:
    """Every pod that was ever there, by UID, and the furthest that each has come."""

    ends: dict[str, str] = field(default_factory=dict)
    most_at_once: int = 0

    async def take(self, client: Client) -> None:
        there: set[str] = set()
        async with aclosing(client.list_watch(PODS, "default")) as events:
            async for event in events:
                if not isinstance(event, Bookmark):
                    self._note(event.type, event.object, there)

    def _note(self, type_: EventType, pod: Object, there: set[str]) -> None:
        uid, phase = pod["metadata"]["uid"], (pod.get("status") or {}).get("phase", "")
        if type_ is EventType.DELETED or phase in ("Succeeded", "Failed"):
            there.discard(uid)
        else:
            there.add(uid)
        self.most_at_once = max(self.most_at_once, len(there))
        if self.ends.get(uid) not in ("Succeeded", "Failed"):
            self.ends[uid] = phase

    def count(self, end: str) -> int:
        return sum(1 for each in self.ends.values() if each == end)


@asynccontextmanager
async def census(server: ApiHandler) -> AsyncIterator[Census]:
    client = connect(server)
    taken = Census()
    async with at_work(lambda: taken.take(client)):
        yield taken


def conditions(status: Object) -> list[str]:
    return [each["type"] for each in status.get("conditions") or [] if each["status"] == "True"]


def has_condition(world: World, type_: str) -> Callable[[], bool]:
    return lambda: type_ in conditions(world.status(JOBS, "work"))
