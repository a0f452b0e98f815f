"""emptyDir volumes: directories that start empty and live as long as their pod."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podlife.api.pod_requests import amount
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.pod_fields import Pod, containers_of
from podlife.kubelet.volumemanager import mount as kernel
from podlife.kubelet.volumemanager.layout import SetUpError
from podlife.kubelet.volumemanager.ownership import give_to_group
from podlife.kubelet.volumemanager.removal import remove_tree

log = logging.getLogger(__name__)


def make_folder(path: Path, group: int | None) -> None:
    """For everybody to write to; once it is there, what its containers made of it stays."""
    if path.is_dir():
        return
    # Made aside: a folder that is there is ready, whenever the kubelet ended.
    new = path.with_name(f"..{path.name}.new"[:255])
    remove_tree(new)
    new.mkdir()
    new.chmod(0o777)
    if group is not None:
        give_to_group(new, group, readonly=False)
    new.rename(path)


def make_in_memory(path: Path, group: int | None, size_bytes: int | None) -> None:
    """On the disk where the kubelet may not mount."""
    if path.is_dir() and (path.is_mount() or any(path.iterdir())):
        return
    path.mkdir(exist_ok=True)
    mode = 0o777 if group is None else 0o2777
    try:
        kernel.mount_memory(path, mode=mode, group=group, size_bytes=size_bytes)
    except PermissionError:
        log.warning("%s is on disk, not in memory: mounting a tmpfs requires root", path)
        path.rmdir()
        make_folder(path, group)


def memory_size(source: Mapping[str, Any], pod: Pod, context: DownwardContext) -> int | None:
    """The least of what the volume, the pod and the node allow; None is the kernel's own bound."""
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
