"""The two controllers. Keys are those of Services.

Both follow Services and the pods that they select; each writes only to what the cache shows, by UID and
resourceVersion, and not before the cache has its own last write. What another client changes is corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from podlife.client import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES, DeleteOptions
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.endpoints.endpoint import ZONE, TriggerTimes
from podlife.endpoints.slice_writer import SliceWriter
from podlife.endpoints.slices import (
    CONTROLLER,
    MANAGED_BY,
    SERVICE_NAME,
    new_slice,
    plan_slices,
    slice_patch,
)
from podlife.endpoints.subsets import CONTROLLER as ENDPOINTS_CONTROLLER
from podlife.endpoints.subsets import MANAGED_BY as ENDPOINTS_MANAGED_BY
from podlife.endpoints.subsets import wanted_endpoints, with_trigger_time
from podlife.endpoints.views import EndpointPod, Endpoints, EndpointSlice, Node, Service
from podlife.errors import ApiError, NotFoundError
from podlife.informer.indexes import Key
from podlife.podcontrol import as_namespace_terminating
from podlife.workqueue import RateLimitedQueue

_BY_NAMESPACE = "namespace"
BY_SERVICE = "service"
# A cache is behind, or a pod's node is not there yet.
CATCH_UP_SECONDS = 0.1
_MISSING_NODE_SECONDS = 10.0


def _namespace_of(obj: Service | EndpointPod) -> Iterable[str]:
    return (obj.metadata.namespace,)


def _service_key_of(obj: EndpointSlice) -> Iterable[str]:
    return ("/".join(_service_of(obj)),)


def _service_of(obj: EndpointSlice) -> Key:
    return (obj.metadata.namespace, obj.metadata.labels.get(SERVICE_NAME, ""))


# Shared: an informer has its indexes once.
by_namespace: Any = {_BY_NAMESPACE: _namespace_of}
by_service: Any = {BY_SERVICE: _service_key_of}


class EnqueueService:
    """A handler of an informer of slices: enqueues the Service, even of a slice that lost it."""

    def __init__(self, queue: RateLimitedQueue[Key]) -> None:
        self._queue = queue

    def on_add(self, obj: EndpointSlice) -> None:
        self._queue.add(_service_of(obj))

    def on_update(self, old: EndpointSlice, new: EndpointSlice) -> None:
        self.on_add(old)
        self.on_add(new)

    def on_delete(self, obj: EndpointSlice) -> None:
        self.on_add(obj)


class ServicePods:
    """Services and the pods that they select, shared by both controllers."""

    def __init__(
        self, plane: ControlPlane, queue: RateLimitedQueue[Key], forget: Callable[[Key], None]
    ) -> None:
        self._queue = queue
        self._services = plane.informer(SERVICES, view=Service, indexers=by_namespace)
        self._pods = plane.informer(PODS, view=EndpointPod, indexers=by_namespace)
        self._services.add_handler(Enqueue(queue, forget))
        self._pods.add_handler(self)

    @property
    def is_live(self) -> bool:
        return self._services.is_live and self._pods.is_live

    def service(self, key: Key) -> Service | None:
        return self._services.cache.get(*key)

    def pods_of(self, service: Service) -> list[EndpointPod]:
        """The pods with an endpoint, by name: the order does not depend on when they were created."""
        found = (
            pod
            for pod in self._pods.cache.by_index(_BY_NAMESPACE, service.metadata.namespace)
            if service.selects(pod.metadata.labels) and pod.has_endpoint
        )
        return sorted(found, key=lambda pod: pod.metadata.name)

    # The handler of the informer of pods

    def on_add(self, pod: EndpointPod) -> None:
        for service in self._services.cache.by_index(_BY_NAMESPACE, pod.metadata.namespace):
            if service.selects(pod.metadata.labels):
                self._queue.add((service.metadata.namespace, service.metadata.name))

    def on_update(self, old: EndpointPod, new: EndpointPod) -> None:
        if old.metadata.labels != new.metadata.labels:
            self.on_add(old)
        if _relevant_fields(old) != _relevant_fields(new):
            self.on_add(new)

    def on_delete(self, pod: EndpointPod) -> None:
        self.on_add(pod)


def _relevant_fields(pod: EndpointPod) -> tuple[object, ...]:
    flags = (pod.is_ready, pod.is_terminating, pod.has_endpoint)
    return (pod.metadata.uid, pod.metadata.labels, pod.status.pod_ips, pod.spec, *flags)


class EndpointSliceController:
    """Upstream's endpointslice-controller."""

    name = "endpointslice-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 1) -> None:
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("endpoint_slice")
        self._times = TriggerTimes()
        self._source = ServicePods(plane, self.queue, self._forget)
        self._nodes = plane.informer(NODES, view=Node)
        self._slices = plane.informer(
            ENDPOINT_SLICES,
            view=EndpointSlice,
            indexers=by_service,
            label_selector=f"{MANAGED_BY}={CONTROLLER}",
        )
        self._slices.add_handler(EnqueueService(self.queue))
        self._writes = OwnWrites({ENDPOINT_SLICES: self._slices})
        self._writer = SliceWriter(plane.client, self._writes)
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)

    async def run(self) -> None:
        await self.controller.run()

    def _forget(self, key: Key) -> None:
        self._times.forget(key)
        self._writes.forget(key)

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors, conflicts with other writers among them."""
        service = self._source.service(key)
        if service is None or not service.selects_pods:
            # Slices of a Service that was deleted go with their owner.
            return None
        is_live = self._source.is_live and self._slices.is_live and self._nodes.is_live
        if not (is_live and self._writes.is_seen(key)):
            return Again(CATCH_UP_SECONDS)
        pods = self._source.pods_of(service)
        trigger_time = self._times.update(service, pods)
        zones = {name: zone for pod in pods if (zone := self._zone(name := pod.spec.node_name)) is not None}
        placed = [
            pod for pod in pods if pod.spec.node_name in zones or service.spec.publish_not_ready_addresses
        ]
        slices = [
            each
            for each in self._slices.cache.by_index(BY_SERVICE, "/".join(key))
            if each.metadata.deletion_timestamp is None
        ]
        for family in {*service.families, *(each.address_type for each in slices)}:
            existing = [each for each in slices if each.address_type == family]
            if family in service.families:
                await self._write(service, family, placed, zones, existing, trigger_time)
            else:
                await self._writer.delete(existing)
        return None if len(placed) == len(pods) else Again(_MISSING_NODE_SECONDS)

    def _zone(self, node: str) -> str | None:
        found = self._nodes.cache.get("", node)
        return None if found is None else found.metadata.labels.get(ZONE, "")

    async def _write(
        self,
        service: Service,
        family: str,
        pods: list[EndpointPod],
        zones: dict[str, str],
        existing: list[EndpointSlice],
        trigger_time: str | None,
    ) -> None:
        key = (service.metadata.namespace, service.metadata.name)
        changes = plan_slices(service, family, pods, zones, existing)
        if service.metadata.deletion_timestamp is None:
            for content in changes.create:
                await self._writer.create(key, new_slice(service, family, content, trigger_time))
        for each, content in changes.update:
            await self._writer.patch(key, each, slice_patch(each, service, content, trigger_time))
        await self._writer.delete(changes.delete)


class EndpointsController:
    """Upstream's endpoints-controller."""

    name = "endpoints-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 1) -> None:
        self._client = plane.client
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("endpoint")
        self._times = TriggerTimes()
        self._source = ServicePods(plane, self.queue, self._forget)
        self._endpoints = plane.informer(ENDPOINTS, view=Endpoints)
        self._endpoints.add_handler(Enqueue(self.queue))
        self._writes = OwnWrites({ENDPOINTS: self._endpoints})
        # Services that were deleted: their Endpoints go, even if users wrote them. Those of which no Service was seen
        # may be waiting for it.
        self._deleted: set[Key] = set()
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)

    async def run(self) -> None:
        await self.controller.run()

    def _forget(self, key: Key) -> None:
        self._times.forget(key)
        self._writes.forget(key)
        self._deleted.add(key)

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors, conflicts with other writers among them."""
        if not (self._source.is_live and self._endpoints.is_live and self._writes.is_seen(key)):
            return Again(CATCH_UP_SECONDS)
        service, existing = self._source.service(key), self._endpoints.cache.get(*key)
        if service is None:
            await self._delete(key, existing)
        elif service.selects_pods:
            await self._write(key, service, existing)
        self._deleted.discard(key)
        return None

    async def _write(self, key: Key, service: Service, existing: Endpoints | None) -> None:
        namespace, name = key
        pods = self._source.pods_of(service)
        trigger_time = self._times.update(service, pods)
        wanted = wanted_endpoints(service, pods, existing)
        if wanted is None:
            return
        wanted = with_trigger_time(wanted, trigger_time)
        if existing is not None:
            written = await self._client.patch(ENDPOINTS, name, wanted, namespace)
        else:
            wanted["metadata"]["name"] = name
            try:
                written = await self._client.create(ENDPOINTS, wanted, namespace)
            except ApiError as error:
                if as_namespace_terminating(error) is None:
                    raise
                return
        self._writes.note(key, ENDPOINTS, written)

    async def _delete(self, key: Key, existing: Endpoints | None) -> None:
        """Of a Service that was deleted: no owner reference says so."""
        if existing is not None and (key in self._deleted or _is_managed(existing)):
            meta = existing.metadata
            options = DeleteOptions(uid=meta.uid)
            with suppress(NotFoundError):
                await self._client.delete(ENDPOINTS, meta.name, meta.namespace, options=options)


def _is_managed(existing: Endpoints) -> bool:
    return existing.metadata.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS_CONTROLLER
