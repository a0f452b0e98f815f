"""Implements `podlife.kubelet.interfaces.ObjectCache` with an API server.

A pod sees every service that existed when it arrived: a list older than the pod's registration is read again. Otherwise
a list is valid as long as any other cached object, and longer while the server is unreachable.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.client import Client
from podlife.client.refs import CONFIG_MAPS, ENDPOINTS, SECRETS, SERVICES
from podlife.clock import Clock
from podlife.errors import ForbiddenError, NotFoundError, PodlifeError
from podlife.kubelet.envvars import service_variables
from podlife.kubelet.object_cache.object_store import TTL_SECONDS, Key, ObjectStore
from podlife.kubelet.object_cache.single_flight import FALLBACK_SECONDS, SingleFlight
from podlife.kubelet.object_cache.token_manager import TokenManager
from podlife.kubelet.pod_fields import Pod, is_static

# The API server's own service; every container gets variables for it.
_MASTER: Key = ("default", "kubernetes")
_HTTPS = 443
# How long an unresponsive server may delay the start of a static pod.
_STATIC_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Registered:
    namespace: str
    # The fields that users may change; a changed status invalidates nothing.
    inputs: tuple[Any, ...]
    config_maps: frozenset[Key]
    secrets: frozenset[Key]
    since: float


class ApiObjectCache:
    """`api_server` is the URL by which this node reaches it."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        api_server: str = "",
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config_maps = ObjectStore(client, CONFIG_MAPS, jitter=jitter)
        self._secrets = ObjectStore(client, SECRETS, jitter=jitter)
        self._tokens = TokenManager(client, clock, jitter=jitter)
        self._services = _ServiceLister(client, api_server)
        self._pods: dict[str, _Registered] = {}
        self._pods_in: Counter[str] = Counter()

    async def config_map(self, namespace: str, name: str) -> Object | None:
        return await self._config_maps.get(namespace, name)

    async def secret(self, namespace: str, name: str) -> Object | None:
        return await self._secrets.get(namespace, name)

    async def token(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        return await self._tokens.get(pod, audience=audience, expiration_seconds=expiration_seconds)

    async def service_environment(self, pod: Pod) -> Mapping[str, str]:
        """Variables of the API server's own service, and of those in the pod's namespace unless it opts out. A static
        pod does not wait for them, because the API server itself may depend on it."""
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
        services = {each["metadata"]["name"]: each for each in await self._services.get(_MASTER, since)}
        if spec.get("enableServiceLinks") is not False:
            namespace = metadata["namespace"]
            for each in await self._services.get((namespace, ""), since):
                if (namespace, each["metadata"]["name"]) != _MASTER:
                    services[each["metadata"]["name"]] = each
        return service_variables(services.values())

    def register(self, pod: Pod) -> None:
        """Invalidate the objects that a pod refers to when it arrives and when its labels, annotations or spec
        change."""
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        inputs = (metadata.get("labels"), metadata.get("annotations"), pod.get("spec"))
        before = self._pods.get(uid)
        if before is not None and before.inputs == inputs:
            return
        namespace = metadata["namespace"]
        config_maps = frozenset((namespace, name) for name in named_config_maps(pod))
        secrets = frozenset((namespace, name) for name in named_secrets(pod))
        now = _Registered(namespace, inputs, config_maps, secrets, asyncio.get_running_loop().time())
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


@dataclass(frozen=True, slots=True)
class _List:
    services: tuple[Object, ...]
    requested_at: float


class _ServiceLister:
    """Lists by namespace and name; without a name, all services of the namespace."""

    def __init__(self, client: Client, api_server: str) -> None:
        self._client = client
        self._api_server = urlsplit(api_server)
        self._kept: dict[Key, _List] = {}
        self._calls: SingleFlight[_List] = SingleFlight()

    async def get(self, key: Key, since: float) -> tuple[Object, ...]:
        wanted_since = max(since, asyncio.get_running_loop().time() - TTL_SECONDS)
        found = kept = self._kept.get(key)
        seconds = None if kept is None else FALLBACK_SECONDS
        task_name = f"services of {key[0]}"
        try:
            while found is None or found.requested_at < wanted_since:
                found = await self._calls.join(key, task_name, lambda: self._read(key), seconds=seconds)
        except (PodlifeError, TimeoutError):
            # A restarted container does not wait for an unreachable server.
            if kept is None:
                raise
            return kept.services
        return found.services

    def forget(self, namespace: str) -> None:
        self._kept.pop((namespace, ""), None)

    async def _read(self, key: Key) -> _List:
        requested_at = asyncio.get_running_loop().time()
        namespace, name = key
        if name:
            try:
                service: Object = await self._client.get(SERVICES, name, namespace)
                services: tuple[Object, ...] = (
                    await self._reachable(service) if key == _MASTER else service,
                )
            except NotFoundError:
                services = ()
        else:
            services = tuple((await self._client.list_all(SERVICES, namespace)).items)
        found = self._kept[key] = _List(services, requested_at)
        return found

    async def _reachable(self, service: Object) -> Object:
        """The API server's own service at an address that pods can reach, because nothing routes its cluster IP: its
        endpoint or, if it has none, where this node reaches the server."""
        try:
            endpoints = await self._client.get(ENDPOINTS, _MASTER[1], _MASTER[0])
            subset = endpoints["subsets"][0]
            host, port = subset["addresses"][0]["ip"], subset["ports"][0]["port"]
        except (NotFoundError, ForbiddenError, IndexError, KeyError):
            host, port = self._api_server.hostname, self._api_server.port or _HTTPS
        if not host:
            return service
        ports = [{**each, "port": port} for each in service["spec"]["ports"][:1]]
        return {**service, "spec": {**service["spec"], "clusterIP": host, "ports": ports}}


def named_config_maps(pod: Pod) -> frozenset[str]:
    """Config maps that a pod refers to, in any field."""
    names = (each.get("name") for each in _sources(pod, "configMap", "configMapRef", "configMapKeyRef"))
    return frozenset(name for name in names if name)


def named_secrets(pod: Pod) -> frozenset[str]:
    """Secrets that a pod refers to, including image pull secrets."""
    sources = [*_sources(pod, "secret", "secretRef", "secretKeyRef"), *_spec(pod, "imagePullSecrets")]
    # A volume has secretName, everything else has name.
    names = (each.get("secretName") or each.get("name") for each in sources)
    return frozenset(name for name in names if name)


def _spec(pod: Pod, field: str) -> list[Mapping[str, Any]]:
    return (pod.get("spec") or {}).get(field) or []


def _sources(pod: Pod, volume: str, from_all: str, from_key: str) -> Iterator[Mapping[str, Any]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in _spec(pod, field):
            for each in container.get("envFrom") or ():
                yield each.get(from_all) or {}
            for each in container.get("env") or ():
                yield (each.get("valueFrom") or {}).get(from_key) or {}
    for each in _spec(pod, "volumes"):
        yield each.get(volume) or {}
        for source in (each.get("projected") or {}).get("sources") or ():
            yield source.get(volume) or {}
