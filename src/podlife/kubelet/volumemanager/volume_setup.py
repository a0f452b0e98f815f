"""Prepares the setup of each volume of a pod, by volume type: reads the API first, then returns the disk operations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from podlife.api.pod_requests import amount
from podlife.clock import Clock
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import ObjectCache, VolumeError
from podlife.kubelet.pod_fields import Pod, containers_of
from podlife.kubelet.volumemanager import atomic_writer
from podlife.kubelet.volumemanager import mount as kernel
from podlife.kubelet.volumemanager.claims import Claims
from podlife.kubelet.volumemanager.container_mounts import MountSource, mounted_inside
from podlife.kubelet.volumemanager.host_path import check_host_path
from podlife.kubelet.volumemanager.layout import Layout, SetUpError
from podlife.kubelet.volumemanager.object_volumes import OBJECT_PLUGINS, files_of
from podlife.kubelet.volumemanager.ownership import fs_group_of, give_to_group
from podlife.linux.removal import remove_tree

log = logging.getLogger(__name__)

_EMPTY_DIR = "kubernetes.io~empty-dir"
_MAY_BE_SECRET = ("secret", "projected")

Volume = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VolumeSetup:
    """The remaining setup of a volume, which needs no API server. `set_up` may be repeated; it raises `SetUpError` and
    OSError."""

    name: str
    source: MountSource
    set_up: Callable[[], None]


@dataclass(frozen=True, slots=True)
class VolumeSetups:
    layout: Layout
    claims: Claims
    objects: ObjectCache
    clock: Clock
    context: Callable[[Pod], DownwardContext]

    async def prepare(self, pod: Pod, volume: Volume, *, is_ready: bool) -> VolumeSetup:
        """`is_ready`: the volume was set up before, so files of the node are not checked again. Raises `SetUpError`, or
        `VolumeError` if the message is complete."""
        name = str(volume["name"])
        kind = next((key for key in volume if key != "name" and volume[key] is not None), "emptyDir")
        source = volume.get(kind) or {}
        if kind in OBJECT_PLUGINS:
            return await self._object_volume(pod, name, kind, source)
        if kind == "emptyDir":
            return self._empty_dir(pod, name, source)
        if kind == "hostPath":
            check = _nothing if is_ready else partial(check_host_path, source)
            return VolumeSetup(name, MountSource(str(source.get("path") or ""), readonly=False), check)
        if kind in ("persistentVolumeClaim", "ephemeral"):
            return await self._claimed(pod, volume, is_ready=is_ready)
        raise VolumeError(
            f'MountVolume.FindPluginBySpec failed for volume "{name}" : no volume plugin matched: '
            f'this node does not support volumes of type "{kind}"'
        )

    async def _object_volume(self, pod: Pod, name: str, kind: str, source: Mapping[str, Any]) -> VolumeSetup:
        payload = await files_of(kind, source, pod, self.objects, self.context(pod))
        uid = str(pod["metadata"]["uid"])
        path = self.layout.volume(uid, OBJECT_PLUGINS[kind], name)
        group, inside, now = fs_group_of(pod), mounted_inside(pod, name), self.clock.now()

        def set_up() -> None:
            folder = self.layout.prepare_folder(uid, path, is_secret=kind in _MAY_BE_SECRET)
            _make_folder(folder, group)
            for each in inside:
                (folder / each).mkdir(mode=0o755, parents=True, exist_ok=True)
            atomic_writer.write(folder, payload, now, partial(_set_group, folder, group))

        return VolumeSetup(name, MountSource(str(path), readonly=True), set_up)

    def _empty_dir(self, pod: Pod, name: str, source: Mapping[str, Any]) -> VolumeSetup:
        path = self.layout.volume(str(pod["metadata"]["uid"]), _EMPTY_DIR, name)
        medium, group = str(source.get("medium") or ""), fs_group_of(pod)
        if medium not in ("", "Memory"):
            raise SetUpError(f'unknown storage medium "{medium}": this node has "" and "Memory"')
        size = _memory_size(source, pod, self.context(pod)) if medium else None

        def set_up() -> None:
            self.layout.make_parents(path)
            if medium:
                _make_in_memory(path, group, size)
            else:
                _make_folder(path, group)

        return VolumeSetup(name, MountSource(str(path), readonly=False), set_up)

    async def _claimed(self, pod: Pod, volume: Volume, *, is_ready: bool) -> VolumeSetup:
        found = await self.claims.resolve(pod, volume)
        group = fs_group_of(pod)
        policy = (pod["spec"].get("securityContext") or {}).get("fsGroupChangePolicy")

        def set_up() -> None:
            if is_ready:
                return
            found.check()
            # Files of a hostPath keep their owner.
            if group is not None and found.kind == "local" and not found.readonly:
                only_on_mismatch = policy == "OnRootMismatch"
                give_to_group(Path(found.path), group, readonly=False, only_on_mismatch=only_on_mismatch)

        return VolumeSetup(str(volume["name"]), MountSource(found.path, readonly=found.readonly), set_up)


def _set_group(folder: Path, group: int | None) -> None:
    if group is not None:
        give_to_group(folder, group, readonly=True)


def _make_folder(path: Path, group: int | None) -> None:
    """Writable by all users. An existing folder keeps the permissions that containers gave it."""
    if path.is_dir():
        return
    # Created under a temporary name, so that an existing folder is always complete.
    new = path.with_name(f"..{path.name}.new"[:255])
    remove_tree(new)
    new.mkdir()
    new.chmod(0o777)
    if group is not None:
        give_to_group(new, group, readonly=False)
    new.rename(path)


def _make_in_memory(path: Path, group: int | None, size_bytes: int | None) -> None:
    """On disk if the kubelet may not mount."""
    if path.is_dir() and (path.is_mount() or any(path.iterdir())):
        return
    path.mkdir(exist_ok=True)
    mode = 0o777 if group is None else 0o2777
    try:
        kernel.mount_memory(path, mode=mode, group=group, size_bytes=size_bytes)
    except PermissionError:
        log.warning("%s is on disk, not in memory: mounting a tmpfs requires root", path)
        path.rmdir()
        _make_folder(path, group)


def _memory_size(source: Mapping[str, Any], pod: Pod, context: DownwardContext) -> int | None:
    """The smallest limit of volume, pod and node; None means the kernel's default."""
    bounds = [source.get("sizeLimit"), context.allocatable.get("memory")]
    try:
        sizes = [amount("memory", str(each)) for each in bounds if each is not None]
        sizes += [] if (limit := _pod_memory_limit(pod)) is None else [limit]
    except ValueError as error:
        raise SetUpError(str(error)) from None
    return min((size for size in sizes if size > 0), default=None)


def _pod_memory_limit(pod: Pod) -> int | None:
    limits = [
        ((each.get("resources") or {}).get("limits") or {}).get("memory") for each in containers_of(pod)
    ]
    if not limits or None in limits:
        return None
    return sum(amount("memory", str(limit)) for limit in limits)


def _nothing() -> None: ...
