"""The files of termination messages, each mounted into its container.

A container cannot replace the file, since it is a mount: what is read here is always the file that was created here.
Processes in the container may write to it; on the node no one else can.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

# The most that a kubelet takes of one container.
_MOST_BYTES = 4096


def make_file(folder: Path) -> Path:
    """A new empty file in the folder, for any user in a container."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / secrets.token_hex(16)
    path.touch(mode=0o600)
    # The folder keeps everybody else on the node away.
    path.chmod(0o666)
    return path


def read_message(path: str) -> str:
    """The end of what was written, empty where nothing was."""
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def remove_others(folder: Path, keep: Iterable[str]) -> None:
    """Forget the files of containers that are gone."""
    kept = set(keep)
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if str(path) not in kept:
            path.unlink(missing_ok=True)
