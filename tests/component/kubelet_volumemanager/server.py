"""An API server for these tests, what was asked of it, and pods that refer to what it has."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.client import CONFIG_MAPS, SECRETS, SERVICES, Client
from podlife.testing import LoopClock
from podlife.wire import Handler, Request, Response
from tests.kit import embedded


class Server:
    """The embedded server, which has no tokens: those are answered here."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        # While there is one, answers are made and then held back until it is set.
        self.held_back: asyncio.Event | None = None
        self.refuse: Callable[[Request], Response | None] = lambda _: None
        self.clock = LoopClock()
        self.token_requests: list[Object] = []
        self.has_tokens = True
        self.client: Client

    async def start(self) -> Server:
        self.client = embedded.connect(await embedded.start(), self._on_the_way)
        return self

    async def _on_the_way(self, request: Request, handler: Handler) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        if (refused := self.refuse(request)) is not None:
            return refused
        if self.has_tokens and request.path.endswith("/token"):
            return self._token(request)
        held_back = self.held_back
        answer = await handler(request)
        if held_back is not None:
            await held_back.wait()
        return answer

    def _token(self, request: Request) -> Response:
        body = json.loads(request.body)
        self.token_requests.append(body)
        end = self.clock.now() + timedelta(seconds=body["spec"]["expirationSeconds"])
        status = {"token": f"token-{len(self.token_requests)}", "expirationTimestamp": format_time(end)}
        return Response(201, json.dumps({**body, "status": status}).encode())

    async def put_config_map(self, name: str, data: dict[str, str], **fields: Any) -> None:
        await self._put(CONFIG_MAPS, {"metadata": {"name": name}, "data": data, **fields})

    async def put_secret(self, name: str, data: dict[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        await self._put(SECRETS, {"metadata": {"name": name}, "data": encoded})

    async def put_service(self, name: str, namespace: str = "default") -> None:
        spec = {"ports": [{"port": 80}]}
        await self.client.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, namespace)

    async def _put(self, ref: Any, obj: Object) -> None:
        name = obj["metadata"]["name"]
        found = [
            each
            for each in (await self.client.list(ref, "default")).items
            if each["metadata"]["name"] == name
        ]
        if found:
            await self.client.update(ref, {**found[0], **obj, "metadata": found[0]["metadata"]})
        else:
            await self.client.create(ref, obj, "default")

    def gets(self, plural: str) -> int:
        return sum(each.startswith("GET") and f"/{plural}/" in each for each in self.asked)


def pod(
    *volumes: Object, uid: str = "uid-1", mounts: list[Object] | None = None, **spec: Any
) -> dict[str, Any]:
    """Mounts every volume at /<its name> unless told otherwise."""
    if mounts is None:
        mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": uid,
        "labels": {"app": "web"},
        "annotations": {},
    }
    container = {"name": "main", "image": "", "volumeMounts": mounts}
    return {"metadata": metadata, "spec": {"containers": [container], "volumes": list(volumes), **spec}}
