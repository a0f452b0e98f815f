"""Volumes of a simulated node: nothing is mounted, but what a pod's volumes need has to be there first.

Claims are bound by whoever looks: to a volume that names them.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from podlife.client import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Client
from podlife.errors import NotFoundError
from podlife.kubelet.interfaces import NoVolumes, VolumeError
from podlife.kubelet.kubelet import Kubelet
from podlife.testing import Cluster


class NeededVolumes(NoVolumes):
    def __init__(self, client: Client) -> None:
        self._client = client

    async def mount(self, pod: Any) -> None:
        for volume in pod["spec"].get("volumes") or ():
            try:
                await self._need(volume)
            except NotFoundError as error:
                raise VolumeError(
                    f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error.message}'
                ) from error

    async def _need(self, volume: Any) -> None:
        if "configMap" in volume:
            await self._client.get(CONFIG_MAPS, volume["configMap"]["name"], "default")
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            await self._client.get(PERSISTENT_VOLUME_CLAIMS, name, "default")
            volumes = (await self._client.list(PERSISTENT_VOLUMES)).items
            claimed = [each for each in volumes if (each["spec"].get("claimRef") or {}).get("name") == name]
            if not claimed:
                raise VolumeError(f'claim "{name}" is not bound')
            bound = {"status": {"phase": "Bound"}}
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS, name, bound, "default", subresource="status")


async def with_volumes(cluster: Cluster, node: str) -> None:
    """From now on the agent of this node needs what volumes need."""
    found = cluster.node(node)
    with patch.object(Kubelet, "_make_volumes", lambda self, client: NeededVolumes(cluster.client)):
        await found.restart()
    await cluster.until(lambda: found.is_registered, within=60)
