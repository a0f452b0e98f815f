"""What the launcher is asked to start: fields between NULs, read without building much."""

from __future__ import annotations

import os


class StartOrder:
    """A request as both sides know it; no field can hold a NUL, since paths cannot."""

    __slots__ = (
        "folder",
        "lock",
        "log_max_bytes",
        "log_max_files",
        "log_path",
        "shutdown_grace_seconds",
        "stop_signal",
        "tty",
    )

    def __init__(self, data: bytes) -> None:
        folder, lock, log_path, max_bytes, max_files, tty, stop_signal, grace = os.fsdecode(data).split("\0")
        self.folder = folder
        self.lock = lock
        self.log_path = log_path
        self.log_max_bytes = int(max_bytes)
        self.log_max_files = int(max_files)
        self.tty = tty == "1"
        self.stop_signal = int(stop_signal)
        self.shutdown_grace_seconds = float(grace)
