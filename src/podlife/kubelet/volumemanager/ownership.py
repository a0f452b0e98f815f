"""The owner of a volume's files: the pod's fsGroup, if the kubelet may change ownership.

Files are changed through descriptors, so that a symlink put in place by a container cannot redirect a change to files
of the node. Files that may not be changed stay as they are.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.volumemanager.container_mounts import all_containers

_READ_WRITE, _READ, _ENTER = 0o660, 0o440, 0o110
_PATH_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def fs_group_of(pod: Pod) -> int | None:
    group: int | None = _security(pod.get("spec") or {}).get("fsGroup")
    return group


def fs_user_of(pod: Pod) -> int | None:
    """The user of all containers, if it is the same."""
    default = _security(pod.get("spec") or {}).get("runAsUser")
    users = {_security(each).get("runAsUser", default) for each in all_containers(pod)}
    return users.pop() if len(users) == 1 else None


def _security(of: Mapping[str, Any]) -> Mapping[str, Any]:
    return of.get("securityContext") or {}


def give_to_group(top: Path, group: int, *, readonly: bool, only_on_mismatch: bool = False) -> None:
    """Apply to everything in a volume, including symlinks but not their targets."""
    allowed = _READ if readonly else _READ_WRITE
    if only_on_mismatch and _has_group(top, group, allowed):
        return
    for name, parent in _entries(top):
        with _ignoring_denied(), suppress(FileNotFoundError):
            os.chown(name, -1, group, dir_fd=parent, follow_symlinks=False)
        with _ignoring_denied(), suppress(FileNotFoundError):
            _add_permissions(name, parent, allowed)


def give_to_user(file: int, user: int) -> None:
    with _ignoring_denied():
        os.fchown(file, user, -1)


@contextmanager
def _ignoring_denied() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # EINVAL: an ID that is not mapped in this user namespace.
        if error.errno not in (errno.EPERM, errno.EACCES, errno.EROFS, errno.EINVAL):
            raise


def _has_group(top: Path, group: int, allowed: int) -> bool:
    found = top.stat()
    wanted = allowed | _ENTER | stat.S_ISGID
    return found.st_gid == group and found.st_mode & wanted == wanted


def _entries(top: Path) -> Iterator[tuple[str, int | None]]:
    """Contents before their folder: the right group at the top means that everything was changed."""
    for _, folders, files, descriptor in os.fwalk(top, topdown=False, follow_symlinks=False):
        yield from ((name, descriptor) for name in (*files, *folders))
    yield str(top), None


def _add_permissions(name: str, parent: int | None, allowed: int) -> None:
    descriptor = os.open(name, _PATH_ONLY, dir_fd=parent)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        wanted = allowed | (_ENTER | stat.S_ISGID if stat.S_ISDIR(mode) else 0)
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode) | wanted)  # noqa: PTH101 - by descriptor
    finally:
        os.close(descriptor)
