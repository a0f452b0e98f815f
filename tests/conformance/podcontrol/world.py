"""The world of a test: an API server in its own process, what was sent to it, and what an owner was told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podlife.api.codec import Object, format_time
from podlife.client import PODS, REPLICA_SETS, Client
from podlife.podcontrol import ControllerRef, OwnedPod, PodControl
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, start

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REF = ControllerRef("apps/v1", "ReplicaSet", "web", "rs-uid")
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}, "finalizers": ["example.com/f"]},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def ago(**delta: float) -> str:
    return format_time(NOW - timedelta(**delta))


def replica_set(name: str = "web", *, uid: str = "rs-uid") -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "7"},
    }


def pod_object(name: str = "p", **metadata: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}


def make_pod(**fields: Any) -> OwnedPod:
    """A pod as it is read: metadata, spec and status of the API."""
    return msgspec.convert({"metadata": {}, **fields}, OwnedPod)


@dataclass
class World:
    client: Client
    # Method, path and body of every request.
    sent: list[tuple[str, str, Object]] = field(default_factory=list)
    # Type, reason, message.
    events: list[tuple[str, str, str]] = field(default_factory=list)
    about: list[dict[str, str]] = field(default_factory=list)
    written: list[tuple[str, ControllerRef | None]] = field(default_factory=list)
    # Answers requests of this method instead of the server.
    answers: dict[str, Response] = field(default_factory=dict)

    @property
    def control(self) -> PodControl:
        return PodControl(self.client, self, on_write=self._on_write)

    def event(self, regarding: dict[str, str], type_: str, reason: str, message: str) -> None:
        self.events.append((type_, reason, message))
        self.about.append(regarding)

    def _on_write(self, pod: Object, ref: ControllerRef | None) -> None:
        assert not self.events, "the hook comes before the event"
        self.written.append((pod["metadata"]["name"], ref))

    async def create_pod(self, name: str = "p", **metadata: Any) -> Object:
        """Without a trace in what was sent."""
        created: Object = await self.client.create(PODS, pod_object(name, **metadata))
        self.sent.clear()
        return created

    async def create_owner(self, name: str = "web") -> Object:
        owner = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
        }
        created: Object = await self.client.create(REPLICA_SETS, owner)
        self.sent.clear()
        return {**created, "apiVersion": "apps/v1", "kind": "ReplicaSet"}

    async def pods(self) -> list[Object]:
        return list((await self.client.list(PODS, "default")).items)


async def open_world() -> World:
    handler = await start()

    async def on_the_way(request: Request, to_server: Handler) -> Response:
        body = json.loads(request.body) if request.body else {}
        world.sent.append((request.method, request.path, body))
        return world.answers.get(request.method) or await to_server(request)

    world = World(connect(handler, on_the_way))
    return world
