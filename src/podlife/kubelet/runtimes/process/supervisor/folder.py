"""A container's folder from its supervisor's point of view: reads the configuration, writes start and exit records.

A container can be claimed only once, and only the supervisor that claimed it starts it. Disk space for the exit record
is reserved at the claim, and the record is durable before the exit becomes visible.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from typing import Any

_EXIT_ROOM_BYTES = 16 * 1024
_MESSAGE_BYTES = 4096


class AlreadyClaimedError(Exception):
    """Another supervisor starts or has started this container."""


class Folder:
    """Opens the folder by path once; all other access is relative to that descriptor."""

    def __init__(self, path: str, lock_path: str) -> None:
        self._dir = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lock_path = lock_path
        self.path = path

    def claim(self) -> None:
        """Claim the container permanently, and hold its lock while this process lives."""
        try:
            os.close(self._create("claimed"))
        except FileExistsError:
            raise AlreadyClaimedError from None
        # Never closed explicitly: the kubelet detects this process's exit by the close.
        self._lock = os.open(self._lock_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        room = self._create("exit.tmp")
        os.posix_fallocate(room, 0, _EXIT_ROOM_BYTES)
        os.close(room)

    def launch(self) -> dict[str, Any]:
        with open(os.open("config.json", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._dir), "rb") as config:
            read: dict[str, Any] = json.load(config)["launch"]
        return read

    def record_start(self, pid: int, started_at_ns: int) -> None:
        fd = self._create("started.tmp")
        os.write(fd, b'{"pid": %d, "started_at_ns": %d}' % (pid, started_at_ns))
        os.close(fd)
        os.rename("started.tmp", "started.json", src_dir_fd=self._dir, dst_dir_fd=self._dir)

    def record_exit(self, record: dict[str, Any]) -> None:
        """Write the record durably: it is the only place that holds the exit code."""
        data = json.dumps(record).encode()
        if len(data) > _EXIT_ROOM_BYTES:
            data = json.dumps(record | {"termination_message": ""}).encode()
        fd = os.open("exit.tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=self._dir)
        os.write(fd, data.ljust(_EXIT_ROOM_BYTES))
        os.fsync(fd)
        os.close(fd)
        os.rename("exit.tmp", "exit.json", src_dir_fd=self._dir, dst_dir_fd=self._dir)
        os.fsync(self._dir)

    def termination_message(self) -> str:
        """The end of the container's termination message, up to the size that a status may carry."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open("termination-log", flags, dir_fd=self._dir)
        except OSError:
            return ""
        with open(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                return ""
            file.seek(max(0, info.st_size - _MESSAGE_BYTES))
            return file.read(_MESSAGE_BYTES).decode(errors="replace")

    def _create(self, name: str) -> int:
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._dir)
