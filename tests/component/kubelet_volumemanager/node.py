"""The volumes of an agent on a folder of the test's, and what their readers see."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.object_cache import ApiObjectCache
from podlife.kubelet.volumemanager import VolumeManager, VolumeSettings
from tests.component.kubelet_volumemanager.server import Server


class Node:
    def __init__(self, server: Server, root: Path, **settings: Any) -> None:
        self.server = server
        self.root = root
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


async def started(root: Path, **settings: Any) -> Node:
    return Node(await Server().start(), root, **settings)


def contents(folder: Path) -> dict[str, bytes]:
    """As a reader sees them: hidden folders are not looked at."""
    found = {}
    for top, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [each for each in folders if not each.startswith("..")]
        for name in names:
            path = Path(top, name)
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
