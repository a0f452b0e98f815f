"""Identity of a kubelet: distinguishes a restart from a second kubelet with the same node name.

It consists of a random ID, stored in the kubelet's data folder, and the machine ID: a folder copied to another machine
makes another kubelet. A kubelet without a folder stores nothing, so its identity is that of its process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from podlife.errors import ConfigError

_FILE = "agent-id"
_BYTES = 16
_MAX_CHARACTERS = 256
_PROCESS = secrets.token_hex(_BYTES)


class KubeletIdentity:
    """`text` raises `ConfigError` if the folder cannot be read or written."""

    def __init__(self, folder: Path | None, machine_id: Callable[[], str] = str) -> None:
        self._folder = folder
        self._machine_id = machine_id

    @cached_property
    def text(self) -> str:
        # A forked process inherits the random part.
        kept = f"{_PROCESS}-{os.getpid()}" if self._folder is None else _kept(self._folder)
        return f"{kept}@{self._machine_id()}"


def _kept(folder: Path) -> str:
    path = folder / _FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            with path.open(encoding="ascii", errors="replace") as file:
                if kept := file.read(_MAX_CHARACTERS).strip():
                    return kept
            # A crash left it empty, so it was never used.
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        made = secrets.token_hex(_BYTES)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(f"{made}\n")
            file.flush()
            os.fsync(fd)
    except OSError as error:
        raise ConfigError(f"cannot keep the agent's identity in {path}: {error.strerror}") from None
    return made
