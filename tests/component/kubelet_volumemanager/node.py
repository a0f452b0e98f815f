"""An API server, what was asked of it, pods that refer to what it has, and the volumes of a kubelet that runs them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.client import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICES,
    Client,
)
from podlife.errors import AlreadyExistsError
from podlife.kubelet.object_cache import ApiObjectCache
from podlife.kubelet.volumemanager import VolumeManager, VolumeSettings
from podlife.testing import LoopClock
from podlife.wire import Handler, Request, Response
from tests.kit import embedded

CONFIG: Object = {"name": "config", "configMap": {"name": "settings"}}
SCRATCH: Object = {"name": "scratch", "emptyDir": {}}


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
        self.client: Client = embedded.connect(self._answer, self._on_the_way)
        self._handler: Handler | None = None
        self._starting = asyncio.Lock()

    async def _answer(self, request: Request) -> Response:
        """Started with the first request, in the loop of the test."""
        async with self._starting:
            self._handler = self._handler or await embedded.start()
        return await self._handler(request)

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
        try:
            await self.client.create(ref, obj, "default")
        except AlreadyExistsError:
            found = await self.client.get(ref, obj["metadata"]["name"], "default")
            await self.client.update(ref, {**found, **obj, "metadata": found["metadata"]})

    def gets(self, plural: str) -> int:
        return sum(each.startswith("GET") and f"/{plural}/" in each for each in self.asked)


def pod(
    *volumes: Object, uid: str = "uid-1", mounts: list[Object] | None = None, **spec: Any
) -> dict[str, Any]:
    """Mounts every volume at /<its name> unless told otherwise."""
    if mounts is None:
        mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    named = {"name": "web", "namespace": "default", "uid": uid}
    metadata = {**named, "labels": {"app": "web"}, "annotations": {}}
    container = {"name": "main", "image": "", "volumeMounts": mounts}
    return {"metadata": metadata, "spec": {"containers": [container], "volumes": list(volumes), **spec}}


class Node:
    """The volumes of a kubelet on a folder of the test's."""

    def __init__(self, root: Path, server: Server | None = None, **settings: Any) -> None:
        self.server = server = server or Server()
        self.reports: list[str] = []
        settings = {"in_threads": False, "report": lambda _, text: self.reports.append(text), **settings}
        self.objects = ApiObjectCache(server.client, server.clock, jitter=lambda: 0.0)
        self.volumes = VolumeManager(
            server.client, self.objects, server.clock, root, VolumeSettings(**settings)
        )

    async def mount(self, wanted: Object) -> dict[str, Path]:
        """Where each volume is."""
        self.objects.register(wanted)
        await self.volumes.mount(wanted)
        container = wanted["spec"]["containers"][0]
        mounts = self.volumes.mounts(wanted, container)
        return {
            said["name"]: Path(each.host_path)
            for said, each in zip(container["volumeMounts"], mounts, strict=True)
        }


def contents(folder: Path) -> dict[str, bytes]:
    """As a reader sees them: hidden folders are not looked at."""
    found = {}
    for top, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [each for each in folders if not each.startswith("..")]
        for name in names:
            path = Path(top, name)
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


async def bind(
    client: Client,
    source: Object,
    *,
    name: str = "mine",
    namespace: str = "default",
    phase: str = "Bound",
    owner: str = "",
    **spec: Any,
) -> None:
    """A claim and the volume `pv` behind it, bound to each other as a controller would."""
    modes = {"accessModes": ["ReadWriteOnce"]}
    metadata: Object = {"name": name}
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    resources = {"requests": {"storage": "1Gi"}}
    wanted = {**modes, "resources": resources, "volumeName": "pv", "storageClassName": ""}
    claims = PERSISTENT_VOLUME_CLAIMS
    claim = await client.create(claims, {"metadata": metadata, "spec": wanted}, namespace)
    await client.patch(claims, name, {"status": {"phase": phase}}, namespace, subresource="status")
    bound_to = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    claim_ref = {**bound_to, "uid": claim["metadata"]["uid"]}
    said = {**modes, "capacity": {"storage": "1Gi"}, "claimRef": claim_ref, **source, **spec}
    await client.create(PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": said})
