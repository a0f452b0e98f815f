"""Files and folders of the node, shown to a container at paths of its own choice, and to nobody else.

A container with mounts has a mount namespace. Where a path does not exist on the node it is made in a layer over what
is there (overlayfs, in memory): the node itself never gets as much as an empty folder. If that is the root, the
container's root becomes the layered one; what it writes outside of its mounts then ends with it.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from . import kernel


def show(mounts: list[dict[str, Any]], folder: str) -> None:
    """Give this process mounts of its own; `folder` is the container's, and stays where it is."""
    # The launcher's umask would close the folders that are made on the way to a mount to the container's own user.
    os.umask(0o022)
    kernel.own_mounts()
    wanted = sorted(mounts, key=lambda mount: _resolved(mount).split("/"))
    # Opened here: what is mounted is what was there before anything was covered.
    sources = [os.open(mount["source"], os.O_PATH | os.O_CLOEXEC) for mount in wanted]
    targets = [_resolved(mount) for mount in wanted]
    missing = [
        target
        for target in targets
        if not os.path.lexists(target)
        and not any(_is_below(target, other) for other in targets if other != target)
    ]
    if missing:
        _cover(missing, folder)
    for source, target, mount in zip(sources, targets, wanted, strict=True):
        _make_target(target, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        kernel.bind_mount(f"/proc/self/fd/{source}", target, readonly=mount["readonly"])
        os.close(source)


def enter(pid: int) -> None:
    """See what another process of the container sees."""
    if os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt"):
        return
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    kernel.enter_mounts(namespace)
    os.fchdir(root)
    os.chroot(".")


def _resolved(mount: dict[str, Any]) -> str:
    return os.path.realpath(str(mount["target"]))


def _cover(missing: list[str], folder: str) -> None:
    """Lay a layer over every mount in which a path is missing."""
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
        _cover_root(points, layers, folder)


def _cover_root(points: list[str], layers: str, folder: str) -> None:
    root = os.path.join(layers, "tree")
    os.mkdir(root, 0o755)
    kernel.mount_layer("/", os.path.join(layers, "root"), at=root)
    for point in _outermost(points, "/"):
        # One that is covered by another, or that was taken away, has nowhere to go.
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
        # Spaces and the like are written as octal numbers.
        points = {line.split(" ")[4].encode("latin-1", "surrogateescape") for line in listed}
    return sorted(point.decode("unicode_escape") for point in points)


def _outermost(points: list[str], above: str) -> list[str]:
    """The mounts right below a mount: not itself, and not those inside of others."""
    inside = [point for point in points if point != above and _is_below(point, above)]
    return [
        point for point in inside if not any(_is_below(point, other) for other in inside if other != point)
    ]


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(above.rstrip("/") + "/")
