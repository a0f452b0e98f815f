"""Endpoints that users write for a Service without a selector, as EndpointSlices: for readers of only those.

A subset becomes a slice per address family, of at most a thousand addresses. Slices have the labels and annotations of
the Endpoints, and go with them.
"""

from __future__ import annotations

from collections.abc import Iterable

from podlife.api.codec import Object
from podlife.client import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.endpoints.controllers import (
    BY_SERVICE,
    CATCH_UP_SECONDS,
    EnqueueService,
    by_namespace,
    by_service,
)
from podlife.endpoints.endpoint import TRIGGER_TIME
from podlife.endpoints.slice_writer import SliceWriter
from podlife.endpoints.slices import (
    MANAGED_BY,
    SERVICE_NAME,
    SliceChanges,
    SliceContent,
    controller_reference,
    identity_of,
    key_of_ports,
    patch_of,
    slice_of,
)
from podlife.endpoints.subsets import repack
from podlife.endpoints.views import Endpoints, EndpointSlice, Service, family_of
from podlife.informer.indexes import Key
from podlife.workqueue import RateLimitedQueue

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED = (TRIGGER_TIME, "kubectl.kubernetes.io/last-applied-configuration")
_MOST_PER_SUBSET = 1000
_FAMILIES = ("IPv4", "IPv6")


def is_mirrored(endpoints: Endpoints | None, service: Service | None) -> bool:
    if endpoints is None or service is None or service.spec.selector is not None:
        return False
    meta = endpoints.metadata
    return meta.labels.get(_SKIP) != "true" and _LEADER not in meta.annotations


def mirrored(endpoints: Endpoints, family: str) -> list[SliceContent]:
    contents = []
    for subset in repack(endpoints.subsets or ()):
        ports = [{"name": ""} | port for port in subset.get("ports", ())]
        addresses = [(each, True) for each in subset.get("addresses", ())]
        addresses += [(each, False) for each in subset.get("notReadyAddresses", ())]
        found = [
            _endpoint(address, is_ready)
            for address, is_ready in addresses[:_MOST_PER_SUBSET]
            if family_of(address["ip"]) == family
        ]
        if found:
            contents.append(SliceContent(ports, found))
    return contents


def _endpoint(address: Object, is_ready: bool) -> Object:
    others = {key: address[key] for key in ("hostname", "nodeName", "targetRef") if address.get(key)}
    return {"addresses": [address["ip"]], "conditions": {"ready": is_ready}} | others


def metadata_of(endpoints: Endpoints) -> Object:
    meta = endpoints.metadata
    return {
        "labels": meta.labels | {SERVICE_NAME: meta.name, MANAGED_BY: CONTROLLER},
        "annotations": {key: value for key, value in meta.annotations.items() if key not in _NOT_COPIED},
    }


def plan_mirror(endpoints: Endpoints, family: str, existing: Iterable[EndpointSlice]) -> SliceChanges:
    """`existing` are the mirrored slices of this family. One that would be deleted is written again instead."""
    changes = SliceChanges()
    by_ports: dict[bytes, list[EndpointSlice]] = {}
    for each in existing:
        by_ports.setdefault(key_of_ports(each.ports or []), []).append(each)
    for content in mirrored(endpoints, family):
        found = by_ports.pop(key_of_ports(content.ports), [])
        changes.delete.extend(found[1:])
        if not found:
            changes.create.append(content)
        elif not _is_current(found[0], endpoints, content):
            changes.update.append((found[0], content))
    changes.delete.extend(each for others in by_ports.values() for each in others)
    while changes.create and changes.delete:
        changes.update.append((changes.delete.pop(), changes.create.pop()))
    return changes


def _is_current(each: EndpointSlice, endpoints: Endpoints, content: SliceContent) -> bool:
    wanted = metadata_of(endpoints)
    if (each.metadata.labels, each.metadata.annotations) != (wanted["labels"], wanted["annotations"]):
        return False
    before, after = (
        {identity_of(one): one for one in some} for some in (each.endpoints or (), content.endpoints)
    )
    return before == after and any(
        owner.uid == endpoints.metadata.uid for owner in each.metadata.owner_references
    )


class EndpointSliceMirroringController:
    """Upstream's endpointslice-mirroring-controller. Keys are those of Endpoints, and of Services of the same name."""

    name = "endpointslice-mirroring-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 1) -> None:
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("endpoint_slice_mirroring")
        self._services = plane.informer(SERVICES, view=Service, indexers=by_namespace)
        self._services.add_handler(Enqueue(self.queue))
        self._endpoints = plane.informer(ENDPOINTS, view=Endpoints)
        self._slices = plane.informer(
            ENDPOINT_SLICES,
            view=EndpointSlice,
            indexers=by_service,
            label_selector=f"{MANAGED_BY}={CONTROLLER}",
        )
        self._slices.add_handler(EnqueueService(self.queue))
        self._writes = OwnWrites({ENDPOINT_SLICES: self._slices})
        self._endpoints.add_handler(Enqueue(self.queue, self._writes.forget))
        self._writer = SliceWriter(plane.client, self._writes)
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)

    async def run(self) -> None:
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors, conflicts with other writers among them."""
        is_live = self._services.is_live and self._endpoints.is_live and self._slices.is_live
        if not (is_live and self._writes.is_seen(key)):
            return Again(CATCH_UP_SECONDS)
        found = self._slices.cache.by_index(BY_SERVICE, "/".join(key))
        slices = [each for each in found if each.metadata.deletion_timestamp is None]
        endpoints = self._endpoints.cache.get(*key)
        if endpoints is None or not is_mirrored(endpoints, self._services.cache.get(*key)):
            await self._writer.delete(slices)
            return None
        for family in _FAMILIES:
            await self._write(
                key, endpoints, family, [each for each in slices if each.address_type == family]
            )
        return None

    async def _write(
        self, key: Key, endpoints: Endpoints, family: str, existing: list[EndpointSlice]
    ) -> None:
        changes, meta = plan_mirror(endpoints, family, existing), metadata_of(endpoints)
        if endpoints.metadata.deletion_timestamp is None:
            for content in changes.create:
                await self._writer.create(
                    key, slice_of("Endpoints", endpoints.metadata, family, content, meta)
                )
        owner = {"ownerReferences": [controller_reference("Endpoints", endpoints.metadata)]}
        for each, content in changes.update:
            annotations = dict.fromkeys(each.metadata.annotations) | meta["annotations"]
            await self._writer.patch(
                key, each, patch_of(each, content, meta | owner | {"annotations": annotations})
            )
        await self._writer.delete(changes.delete)
