"""One filesystem in memory for every volume that may hold a secret, so that none is ever written to the disk.

One for the whole node: each mount is seen by every container's own view, and a mount per volume would be hundreds of
thousands on a full node. It is mounted when it is first needed and goes when nothing is left in it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from podlife.kubelet.volumemanager import mount as kernel
from podlife.kubelet.volumemanager.removal import remove_tree


class Tmpfs:
    def __init__(self, path: Path) -> None:
        self._path = path
        # Pods are set up and removed in different threads: nobody may unmount what somebody is about to use.
        self._lock = threading.Lock()

    def folder(self, uid: str) -> Path | None:
        """A private folder for a pod; None where the kubelet may not mount."""
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
            if self._path.is_mount() and not self.uids():
                kernel.unmount(str(self._path))
                self._path.rmdir()
