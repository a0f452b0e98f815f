"""Reads, patches and deletes pods for the status manager, with podlife's own client."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.client import Client
from podlife.client.options import DeleteOptions, PatchType
from podlife.client.refs import PODS


class ApiStatusClient:
    """A `PodStatusClient`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, namespace: str, name: str) -> Object:
        pod: Object = await self._client.get(PODS, name, namespace)
        return pod

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        pod: Object = await self._client.patch(
            PODS, name, patch, namespace, type=PatchType.STRATEGIC, subresource="status"
        )
        return pod

    async def delete(self, namespace: str, name: str, *, uid: str) -> None:
        options = DeleteOptions(grace_period_seconds=0, uid=uid)
        await self._client.delete(PODS, name, namespace, options=options, metadata_only=True)
