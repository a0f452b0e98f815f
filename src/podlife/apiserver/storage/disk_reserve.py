"""Reserved disk space for when the disk is full.

Even a deletion has to be written. So some space is allocated in advance, in a file without content, and released when
a write finds no room: it is enough to change and delete existing objects, while nothing new is accepted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# The write-ahead log may have to be checkpointed first, 16 MB; the rest is enough to delete an object of the largest
# size, whose last state is written to both.
RESERVE_BYTES = 24 << 20
# This much more must be free before the space is reserved again: it is not for new objects.
MARGIN_BYTES = 4 << 20


class DiskReserve:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self.is_spent = True

    def take(self) -> None:
        """Reserve the space for the first time: on a small disk half of what is free."""
        disk = os.statvfs(self._path.parent)
        self._size = min(RESERVE_BYTES, disk.f_bavail * disk.f_frsize // 2)
        self._allocate()

    def take_back(self) -> bool:
        """Reserve the space again once more than that is free; returns whether it is reserved."""
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < self._size + MARGIN_BYTES:
            return False
        self._allocate()
        return not self.is_spent

    def spend(self) -> None:
        self.is_spent = True
        with suppress(OSError):
            self._path.unlink()

    def _allocate(self) -> None:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                # On file systems that cannot allocate, the C library writes the blocks instead.
                os.posix_fallocate(file, 0, max(1, self._size))
            finally:
                os.close(file)
        except OSError:
            self.spend()
        else:
            self.is_spent = False
