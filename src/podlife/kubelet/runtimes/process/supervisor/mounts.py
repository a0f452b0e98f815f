"""Mounts files and folders of the node into a container, visible only there.

A container with mounts has its own mount namespace. A mount point that does not exist on the node is created in an
in-memory overlay, so the node's file system is not changed. If the overlay covers the root, it becomes the
container's root, and what the container writes outside its mounts is lost when it exits. Only the mount point of the
service account, which nearly every pod has, is created on the node, as an empty folder: a pod without volumes writes to
the node's files.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any

from . import kernel

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def set_up(mounts: list[dict[str, Any]], folder: str) -> None:
    """Give this process its own mounts; `folder`, the container's folder, keeps its path."""
    # The launcher's umask would deny the container's user access to folders created on the way to a mount point.
    os.umask(0o022)
    kernel.unshare_mounts()
    wanted = sorted(mounts, key=lambda mount: _resolved(mount).split("/"))
    # Open the sources before anything is mounted over them.
    sources = [os.open(mount["source"], os.O_PATH | os.O_CLOEXEC) for mount in wanted]
    targets = [_resolved(mount) for mount in wanted]
    if any(mount["target"] == _SERVICE_ACCOUNT for mount in wanted):
        with suppress(OSError):
            os.makedirs(_SERVICE_ACCOUNT, 0o755, exist_ok=True)
    missing = [
        target
        for target in targets
        if not os.path.lexists(target)
        and not any(_is_below(target, other) for other in targets if other != target)
    ]
    if missing:
        _overlay(missing, folder)
    for source, target, mount in zip(sources, targets, wanted, strict=True):
        _make_target(target, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        kernel.bind_mount(f"/proc/self/fd/{source}", target, readonly=mount["readonly"])
        os.close(source)


def enter(pid: int) -> None:
    """Enter the mount namespace and root of another process of the container."""
    if os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt"):
        return
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    kernel.enter_mounts(namespace)
    os.fchdir(root)
    os.chroot(".")


def _resolved(mount: dict[str, Any]) -> str:
    return os.path.realpath(str(mount["target"]))


def _overlay(missing: list[str], folder: str) -> None:
    """Mount an overlay over every mount in which a path is missing."""
    points = _mount_points()
    holders = {max((point for point in points if _is_below(path, point)), key=len) for path in missing}
    layers = os.path.join(folder, "layers")
    os.makedirs(layers, 0o700, exist_ok=True)
    kernel.mount_in_memory(layers)
    for number, holder in enumerate(sorted(holders - {"/"})):
        below = [point for point in _outermost(points, holder) if os.path.lexists(point)]
        kept = [os.open(point, os.O_PATH | os.O_CLOEXEC) for point in below]
        kernel.mount_layer(holder, os.path.join(layers, str(number)), at=holder)
        for source, point in zip(kept, below, strict=True):
            kernel.bind_mount(f"/proc/self/fd/{source}", point, readonly=False)
            os.close(source)
    if "/" in holders:
        _overlay_root(points, layers, folder)


def _overlay_root(points: list[str], layers: str, folder: str) -> None:
    root = os.path.join(layers, "tree")
    os.mkdir(root, 0o755)
    kernel.mount_layer("/", os.path.join(layers, "root"), at=root)
    for point in _outermost(points, "/"):
        # A mount point hidden by another mount, or removed, has no target.
        if os.path.lexists(root + point) and os.path.lexists(point):
            kernel.bind_mount(point, root + point, readonly=False)
    kernel.bind_mount(folder, root + folder, readonly=False)
    os.chroot(root)
    os.chdir("/")


def _make_target(path: str, *, is_folder: bool) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(path if is_folder else os.path.dirname(path), 0o755, exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as listed:
        # mountinfo escapes spaces and other special characters as octal numbers.
        points = {line.split(" ")[4].encode("latin-1", "surrogateescape") for line in listed}
    return sorted(point.decode("unicode_escape") for point in points)


def _outermost(points: list[str], above: str) -> list[str]:
    """The mounts directly below a mount, without nested ones."""
    inside = [point for point in points if point != above and _is_below(point, above)]
    return [
        point for point in inside if not any(_is_below(point, other) for other in inside if other != point)
    ]


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(above.rstrip("/") + "/")
