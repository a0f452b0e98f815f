"""The services of namespaces, listed when a pod needs them.

A pod sees every service that existed when it arrived: a list older than the pod's registration is read again. Apart
from that a list is valid as long as any other cached object, and longer while the server is unreachable.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.client import Client
from podlife.client.refs import SERVICES
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.object_cache.object_store import TTL_SECONDS
from podlife.kubelet.object_cache.single_flight import PATIENCE_SECONDS, SingleFlight

MASTER_NAMESPACE = "default"
MASTER_SERVICE = "kubernetes"

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _List:
    services: tuple[Object, ...]
    asked_at: float


class ServiceLister:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: dict[Key, _List] = {}
        self._calls: SingleFlight[_List] = SingleFlight()

    async def master(self, *, since: float) -> tuple[Object, ...]:
        """The API server's own service, of which every container is told."""
        return await self._get((MASTER_NAMESPACE, MASTER_SERVICE), since)

    async def of_namespace(self, namespace: str, *, since: float) -> tuple[Object, ...]:
        return await self._get((namespace, ""), since)

    def forget(self, namespace: str) -> None:
        self._kept.pop((namespace, ""), None)

    async def _get(self, key: Key, since: float) -> tuple[Object, ...]:
        wanted_since = max(since, asyncio.get_running_loop().time() - TTL_SECONDS)
        found = kept = self._kept.get(key)
        try:
            while found is None or found.asked_at < wanted_since:
                found = await self._calls.join(
                    key,
                    f"services of {key[0]}",
                    lambda: self._read(key),
                    seconds=None if kept is None else PATIENCE_SECONDS,
                )
        except (PodlifeError, TimeoutError):
            # A container that starts again does not wait for a server that is gone.
            if kept is None:
                raise
            return kept.services
        return found.services

    async def _read(self, key: Key) -> _List:
        asked_at = asyncio.get_running_loop().time()
        namespace, name = key
        if name:
            try:
                services: tuple[Object, ...] = (await self._client.get(SERVICES, name, namespace),)
            except NotFoundError:
                services = ()
        else:
            services = tuple((await self._client.list_all(SERVICES, namespace)).items)
        found = self._kept[key] = _List(services, asked_at)
        return found
