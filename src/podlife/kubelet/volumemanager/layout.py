"""Paths of pod volumes: `<root>/pods/<uid>/volumes/<plugin>/<name>`, as upstream.

Names come from users: those that could lead elsewhere are rejected. Every folder between the root and a volume is
private to the kubelet (0700), so that only containers that mount a volume can access it.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

from podlife.errors import PodlifeError
from podlife.kubelet.volumemanager import mount as kernel
from podlife.linux.removal import remove_empty, remove_tree


class SetUpError(PodlifeError):
    """A volume could not be set up; the caller adds the volume's name."""


class Layout:
    def __init__(self, root: Path) -> None:
        # Symlinks on the way to the root are the user's choice; below it there are none.
        self.root = Path(os.path.realpath(root))
        self._pods = self.root / "pods"
        self._memory = _Tmpfs(self.root / "memory")

    def volume(self, uid: str, plugin: str, name: str) -> Path:
        return self._pod(uid) / "volumes" / plugin / _checked(name, "volume")

    def sub_path(self, uid: str, volume: str, container: str, index: int) -> Path:
        parts = _checked(volume, "volume"), _checked(container, "container")
        return self._pod(uid).joinpath("volume-subpaths", *parts, str(index))

    def prepare_folder(self, uid: str, path: Path, *, is_secret: bool) -> Path:
        """Create the parents of a volume and return its folder, which the caller creates: in a tmpfs for a secret if
        the kubelet may mount; the volume's path is then a symlink to it."""
        self.make_parents(path)
        if not is_secret or (path.is_dir() and not path.is_symlink()):
            return path
        if (folder := self._memory.folder(uid)) is None:
            return path
        folder_in_memory = folder / path.parent.name / path.name
        _make_private(folder_in_memory.parent)
        if not path.is_symlink() or path.readlink() != folder_in_memory:
            path.unlink(missing_ok=True)
            path.symlink_to(folder_in_memory)
        return folder_in_memory

    def make_parents(self, path: Path) -> None:
        """Create the folders above a path of this layout, all private."""
        folder = self.root
        # The root may be shared, with any permissions.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in path.relative_to(self.root).parts[:-1]:
            folder = folder / part
            _make_private(folder)

    def has(self, uid: str) -> bool:
        try:
            return self._pod(uid).exists() or self._memory.has(uid)
        except SetUpError:
            # A pod with an invalid UID was never admitted.
            return False

    def uids(self) -> list[str]:
        """Pods with volumes."""
        found = self._memory.uids()
        with suppress(FileNotFoundError):
            found |= {
                each.name for each in self._pods.iterdir() if any(part.exists() for part in _parts(each))
            }
        return sorted(found)

    def remove(self, uid: str) -> None:
        """Remove everything of a pod, with its mounts but not their sources. Raises OSError."""
        if not self.has(uid):
            return
        pod = self._pod(uid)
        self._memory.remove(uid)
        if not pod.exists():
            return
        volumes, sub_paths = _parts(pod)
        for folder in (sub_paths, volumes):
            for point in kernel.mount_points(folder):
                kernel.unmount(point)
            if left := kernel.mount_points(folder):
                raise OSError(f"{left[0]} is still mounted")
        # Innermost first: volume, container, mount. Only empty folders are removed, so that an overlooked mount is
        # never entered.
        for depth in ("*/*/*", "*/*", "*"):
            for path in sub_paths.glob(depth):
                remove_empty(path)
        remove_empty(sub_paths)
        remove_tree(volumes)
        if not any(pod.iterdir()):
            pod.rmdir()

    def _pod(self, uid: str) -> Path:
        return self._pods / _checked(uid, "pod")


class _Tmpfs:
    """One tmpfs for all volumes that may contain secrets, so that none is written to disk.

    One for the whole node: every container's mount namespace contains all mounts, and one per volume would be hundreds
    of thousands on a full node. Mounted when first needed, unmounted when empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Threads set up and remove pods concurrently: none may unmount what another is about to use.
        self._lock = threading.Lock()

    def folder(self, uid: str) -> Path | None:
        """A private folder for a pod; None if the kubelet may not mount."""
        with self._lock:
            self._path.mkdir(mode=0o700, exist_ok=True)
            if not self._path.is_mount():
                try:
                    kernel.mount_memory(self._path, mode=0o700)
                except PermissionError:
                    self._path.rmdir()
                    return None
            (self._path / uid).mkdir(mode=0o700, exist_ok=True)
            return self._path / uid

    def has(self, uid: str) -> bool:
        return (self._path / uid).exists()

    def uids(self) -> set[str]:
        try:
            return {each.name for each in self._path.iterdir()}
        except FileNotFoundError:
            return set()

    def remove(self, uid: str) -> None:
        """Raises OSError."""
        with self._lock:
            remove_tree(self._path / uid)
            if not self.uids():
                self.release()

    def release(self) -> None:
        if self._path.is_mount():
            kernel.unmount(str(self._path))
            self._path.rmdir()


def release_memory(root: Path) -> None:
    """Forget the contents of secret volumes, after all pods of a node have ended; its next kubelet fetches them again.
    Raises OSError."""
    _Tmpfs(Path(os.path.realpath(root)) / "memory").release()


def _parts(pod: Path) -> tuple[Path, Path]:
    return pod / "volumes", pod / "volume-subpaths"


def _checked(name: str, what: str) -> str:
    if (
        name in ("", ".")
        or name.startswith("..")
        or "/" in name
        or "\0" in name
        or len(os.fsencode(name)) > 255
    ):
        raise SetUpError(f"{name!r} cannot be the name of a {what}'s folder")
    return name


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise SetUpError(f"{folder} is in the way: it is not a folder")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
