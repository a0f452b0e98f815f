"""hostPath volumes: checked, created if the type says so, and never removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from podlife.kubelet.volumemanager.layout import SetUpError

_IS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}
_OR_CREATE = "OrCreate"


def check_host_path(source: Mapping[str, Any]) -> None:
    """Raises `SetUpError` if the path does not match the volume's type. An empty type matches everything."""
    path, kind = str(source.get("path") or ""), str(source.get("type") or "")
    if ".." in path.split("/"):
        raise SetUpError(f"invalid HostPath `{path}`: must not contain '..'")
    if not path.startswith("/") or "\0" in path:
        raise SetUpError(f"invalid HostPath `{path}`: must be an absolute path")
    if not kind:
        return
    wanted = kind.removesuffix(_OR_CREATE)
    if wanted not in _IS or (kind != wanted and wanted not in ("Directory", "File")):
        raise SetUpError(f"{kind} is an invalid volume type")
    mode = _mode_of(path)
    if mode is None and kind != wanted:
        _make(path, is_folder=wanted == "Directory")
        return
    is_it, what = _IS[wanted]
    if mode is None or not is_it(mode):
        raise SetUpError(f"hostPath type check failed: {path} is not {what}")


def _mode_of(path: str) -> int | None:
    """The mode of the target, following symlinks; None if it is missing or inaccessible."""
    try:
        return Path(path).stat().st_mode
    except OSError:
        return None


def _make(path: str, *, is_folder: bool) -> None:
    try:
        if is_folder:
            Path(path).mkdir(0o755, parents=True, exist_ok=True)
        else:
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    except OSError as error:
        raise SetUpError(f"{error.strerror}: {path}") from None
