"""Linux mount calls that Python lacks, and the list of mount points."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from pathlib import Path

_MS_NOSUID, _MS_NODEV, _MS_BIND = 0x2, 0x4, 0x1000
# Lazily, since a process may still use the mount; and never through a symlink.
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8
_OCTAL = re.compile(rb"\\([0-7]{3})")

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount_memory(target: Path, *, mode: int, group: int | None = None, size_bytes: int | None = None) -> None:
    """Mount a tmpfs, without swap where the kernel supports that."""
    options = [f"mode={mode:o}"]
    options += [f"gid={group}"] if group is not None else []
    options += [f"size={size_bytes}"] if size_bytes else []
    try:
        _mount_memory(target, [*options, "noswap"])
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _mount_memory(target, options)


def _mount_memory(target: Path, options: list[str]) -> None:
    flags = _MS_NOSUID | _MS_NODEV
    result = _libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", flags, ",".join(options).encode())
    _checked(result, f"mount memory at {target}")


def bind(source: int, target: Path) -> None:
    """Bind-mount the open `source` at `target`, wherever its path leads by now."""
    path = f"/proc/self/fd/{source}".encode()
    _checked(_libc.mount(path, os.fsencode(target), None, _MS_BIND, None), f"mount at {target}")


def unmount(target: str) -> None:
    """A path that is not a mount counts as unmounted."""
    if _libc.umount2(os.fsencode(target), _MNT_DETACH | _UMOUNT_NOFOLLOW) != 0:
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOENT):
            raise OSError(code, f"unmount {target}: {os.strerror(code)}")


def mount_points(below: Path) -> list[str]:
    """All mounts at or below a folder, innermost first; stacked mounts are listed once each."""
    top = os.path.realpath(below)
    points = []
    with Path("/proc/self/mountinfo").open("rb") as listed:
        for line in listed:
            # mountinfo escapes spaces and other special characters as octal numbers.
            point = os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), line.split(b" ")[4]))
            if point == top or point.startswith(f"{top}/"):
                points.append(point)
    return sorted(points, key=len, reverse=True)
