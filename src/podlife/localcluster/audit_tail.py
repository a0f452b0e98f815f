"""Follows the audit log of a local cluster while it is written, for the live view to show who deleted a pod.

It starts at the end of the file, continues across rotations, and reads a bounded amount at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from podlife.explain import AuditCollection, AuditedRequest

# More than this between two polls is skipped: the view shows the last pods, not all of them.
_MOST_BYTES = 4 << 20


class AuditTail:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self._rest = b""
        self._look()
        self._offset = self._size

    def poll(self) -> Sequence[AuditedRequest]:
        """Requests logged since the last poll; none when the log cannot be read."""
        inode = self._inode
        self._look()
        if self._inode != inode or self._size < self._offset:
            self._offset, self._rest = 0, b""
        found = AuditCollection()
        *lines, self._rest = (self._rest + self._read()).split(b"\n")
        for line in lines:
            found.add(line + b"\n")
        return found.requests

    def _look(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            self._size = 0
            return
        self._inode, self._size = status.st_ino, status.st_size

    def _read(self) -> bytes:
        if self._size - self._offset > _MOST_BYTES:
            self._offset, self._rest = self._size - _MOST_BYTES, b""
        if self._size <= self._offset:
            return b""
        try:
            with self._path.open("rb") as file:
                os.lseek(file.fileno(), self._offset, os.SEEK_SET)
                data = os.read(file.fileno(), self._size - self._offset)
        except OSError:
            return b""
        self._offset += len(data)
        return data
