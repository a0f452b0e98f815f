"""Writes EndpointSlices for a controller: by UID and resourceVersion, and noted until its cache shows them."""

from __future__ import annotations

from collections.abc import Iterable

from podlife.api.codec import Object
from podlife.client import ENDPOINT_SLICES, Client, DeleteOptions
from podlife.controller import OwnWrites
from podlife.endpoints.views import EndpointSlice
from podlife.errors import ApiError, NotFoundError
from podlife.informer.indexes import Key
from podlife.podcontrol import as_namespace_terminating


class SliceWriter:
    """Keys are those of Services. Raises the server's errors, conflicts with other writers among them."""

    def __init__(self, client: Client, writes: OwnWrites) -> None:
        self._client = client
        self._writes = writes

    async def create(self, key: Key, body: Object) -> None:
        """In a namespace that is being deleted nothing is created."""
        try:
            written = await self._client.create(ENDPOINT_SLICES, body, key[0])
        except ApiError as error:
            if as_namespace_terminating(error) is None:
                raise
            return
        self._writes.note(key, ENDPOINT_SLICES, written)

    async def patch(self, key: Key, each: EndpointSlice, patch: Object) -> None:
        written = await self._client.patch(ENDPOINT_SLICES, each.metadata.name, patch, key[0])
        self._writes.note(key, ENDPOINT_SLICES, written)

    async def delete(self, slices: Iterable[EndpointSlice]) -> None:
        for each in slices:
            meta = each.metadata
            options = DeleteOptions(uid=meta.uid)
            try:
                await self._client.delete(ENDPOINT_SLICES, meta.name, meta.namespace, options=options)
            except NotFoundError:
                continue
