"""`podlife.kubelet.interfaces.ObjectCache` over an API server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.client import Client
from podlife.client.refs import CONFIG_MAPS, SECRETS
from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.kubelet.envvars import service_variables
from podlife.kubelet.object_cache.object_store import Key, ObjectStore
from podlife.kubelet.object_cache.referenced_names import named_config_maps, named_secrets
from podlife.kubelet.object_cache.service_lister import MASTER_NAMESPACE, MASTER_SERVICE, ServiceLister
from podlife.kubelet.object_cache.token_manager import TokenManager
from podlife.kubelet.pod_fields import Pod, is_static

# How long a static pod's start is held up by a server that does not answer.
_STATIC_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Registered:
    namespace: str
    # What a user may change of a pod; its status is no reason to ask for anything again.
    wish: tuple[Any, ...]
    config_maps: frozenset[Key]
    secrets: frozenset[Key]
    since: float


class ApiObjectCache:
    def __init__(self, client: Client, clock: Clock, *, jitter: Callable[[], float] = random.random) -> None:
        self._config_maps = ObjectStore(client, CONFIG_MAPS, jitter=jitter)
        self._secrets = ObjectStore(client, SECRETS, jitter=jitter)
        self._tokens = TokenManager(client, clock, jitter=jitter)
        self._services = ServiceLister(client)
        self._pods: dict[str, _Registered] = {}
        self._pods_in: Counter[str] = Counter()

    async def config_map(self, namespace: str, name: str) -> Object | None:
        return await self._config_maps.get(namespace, name)

    async def secret(self, namespace: str, name: str) -> Object | None:
        return await self._secrets.get(namespace, name)

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        return await self._tokens.get(pod, audience=audience, expiration_seconds=expiration_seconds)

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        """The API server's own service always; those of the pod's namespace unless it does not want them. A static pod
        does not wait for them: it may be what the API server itself needs."""
        if not is_static(pod):
            return await self._service_environment(pod)
        try:
            async with asyncio.timeout(_STATIC_SECONDS):
                return await self._service_environment(pod)
        except (PodlifeError, TimeoutError):
            return {}

    async def _service_environment(self, pod: Pod) -> Mapping[str, str]:
        metadata, spec = pod["metadata"], pod["spec"]
        registered = self._pods.get(metadata["uid"])
        since = asyncio.get_running_loop().time() if registered is None else registered.since
        services = {each["metadata"]["name"]: each for each in await self._services.master(since=since)}
        if spec.get("enableServiceLinks") is not False:
            namespace = metadata["namespace"]
            for each in await self._services.of_namespace(namespace, since=since):
                if (namespace, each["metadata"]["name"]) != (MASTER_NAMESPACE, MASTER_SERVICE):
                    services[each["metadata"]["name"]] = each
        return service_variables(services.values())

    def register(self, pod: Pod) -> None:
        """What a pod refers to is asked for again when it comes, and when its labels, annotations or spec change."""
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        wish = (metadata.get("labels"), metadata.get("annotations"), pod.get("spec"))
        before = self._pods.get(uid)
        if before is not None and before.wish == wish:
            return
        namespace = metadata["namespace"]
        now = _Registered(
            namespace,
            wish,
            frozenset((namespace, name) for name in named_config_maps(pod)),
            frozenset((namespace, name) for name in named_secrets(pod)),
            asyncio.get_running_loop().time(),
        )
        self._pods[uid] = now
        self._config_maps.add(now.config_maps)
        self._secrets.add(now.secrets)
        if before is None:
            self._pods_in[namespace] += 1
        else:
            self._drop(before)

    def unregister(self, uid: str) -> None:
        self._tokens.forget(uid)
        before = self._pods.pop(uid, None)
        if before is None:
            return
        self._drop(before)
        self._pods_in[before.namespace] -= 1
        if self._pods_in[before.namespace] <= 0:
            del self._pods_in[before.namespace]
            self._services.forget(before.namespace)

    def _drop(self, before: _Registered) -> None:
        self._config_maps.drop(before.config_maps)
        self._secrets.drop(before.secrets)
