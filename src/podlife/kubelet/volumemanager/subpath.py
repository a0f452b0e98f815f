"""Mounts a subPath of a volume without ever leaving the volume.

A container can change the volume concurrently, for example replace a folder with a symlink to files of the node. So
nothing is accessed by its path: the path is walked step by step from the volume's open root, the kernel follows no
symlink, a symlink's target is walked by the same rules, and `..` returns to a folder that is still open. The result is
mounted by its descriptor, which leaves no gap between check and mount.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podlife.kubelet.volumemanager import mount as kernel
from podlife.linux.removal import remove_empty

_MAX_LINKS = 40
_MAX_DEPTH = 255
_PATH_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def mount_sub_path(source: int, target: Path) -> Path:
    """Bind-mount the open `source` at `target`; returns the path to use."""
    if _is_mounted(target, source):
        return target
    kernel.unmount(str(target))
    remove_empty(target)
    if stat.S_ISDIR(os.fstat(source).st_mode):
        target.mkdir(mode=0o700)
    else:
        target.touch(mode=0o600, exist_ok=False)
    try:
        kernel.bind(source, target)
    except PermissionError:
        # A user without mount permission runs containers as the same user: they gain nothing.
        remove_empty(target)
        return Path(f"/proc/self/fd/{source}").readlink()
    return target


def _is_mounted(target: Path, source: int) -> bool:
    try:
        return os.path.samestat(target.lstat(), os.fstat(source))
    except FileNotFoundError:
        return False


@contextmanager
def opened_beneath(base: Path, path: str) -> Iterator[int]:
    """A descriptor (O_PATH) of a relative path in a volume; missing folders are created with the volume's permissions.
    Raises OSError, including for a path that leads out of the volume."""
    walk = _Walk(os.path.realpath(base))
    try:
        yield walk.to(path)
    finally:
        walk.close()


class _Walk:
    def __init__(self, base: str) -> None:
        self._base = base
        self._open = [os.open(base, os.O_PATH | os.O_CLOEXEC)]
        self._mode = stat.S_IMODE(os.fstat(self._open[0]).st_mode)
        self._links = 0

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())

    def to(self, path: str) -> int:
        steps = deque(path.split("/"))
        while steps:
            step = steps.popleft()
            if step in ("", "."):
                continue
            if step == "..":
                self._up()
                continue
            found = self._open_or_create(step)
            if stat.S_ISLNK(os.fstat(found).st_mode):
                steps.extendleft(reversed(self._target(found).split("/")))
            else:
                self._open.append(found)
                if len(self._open) > _MAX_DEPTH:
                    raise OSError(errno.ENAMETOOLONG, f"{path!r} is too deep")
        return self._open[-1]

    def _open_or_create(self, step: str) -> int:
        try:
            return os.open(step, _PATH_ONLY, dir_fd=self._open[-1])
        except FileNotFoundError:
            pass
        try:
            os.mkdir(step, self._mode & 0o777, dir_fd=self._open[-1])
        except FileExistsError:
            # Another process was faster; its result is checked like anything else.
            return os.open(step, _PATH_ONLY, dir_fd=self._open[-1])
        made = os.open(step, _PATH_ONLY | os.O_DIRECTORY, dir_fd=self._open[-1])
        # Independent of the kubelet's umask.
        os.chmod(f"/proc/self/fd/{made}", self._mode)  # noqa: PTH101 - by descriptor
        return made

    def _up(self) -> None:
        if len(self._open) == 1:
            raise OSError(errno.EXDEV, "the path leads out of the volume")
        os.close(self._open.pop())

    def _target(self, link: int) -> str:
        try:
            target = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, "too many links")
        if not target.startswith("/"):
            return target
        if target != self._base and not target.startswith(f"{self._base}/"):
            raise OSError(errno.EXDEV, "a link leads out of the volume")
        while len(self._open) > 1:
            os.close(self._open.pop())
        return target.removeprefix(self._base)
