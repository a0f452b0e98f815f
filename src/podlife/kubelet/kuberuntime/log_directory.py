"""Pod logs on disk: `<logs>/<namespace>_<name>_<uid>/<container>/<attempt>.log`, in the CRI log format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from podlife.kubelet.pod_fields import Pod

# Limits of a log tail that is used as termination message.
LOG_BYTES = 2048
LOG_LINES = 80
# Each log line starts with time, stream and tag.
_LINE_OVERHEAD_BYTES = 64


def log_path(container_name: str, attempt: int) -> str:
    """Relative to the pod's folder."""
    return f"{container_name}/{attempt}.log"


class LogDirectory:
    """`root` is None on a node without logs."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    @property
    def is_kept(self) -> bool:
        return self._root is not None

    def of(self, pod: Pod) -> Path | None:
        if self._root is None:
            return None
        metadata = pod["metadata"]
        return self._root / f"{metadata.get('namespace') or ''}_{metadata['name']}_{metadata['uid']}"

    def names(self, pod: Pod, container_name: str) -> list[str]:
        folder = self.of(pod)
        try:
            return [] if folder is None else [each.name for each in (folder / container_name).iterdir()]
        except OSError:
            return []

    def remove_if(self, is_unwanted: Callable[[str], bool]) -> None:
        """Remove the folders of unwanted pods, by UID. Failed removals are retried by the next call."""
        if self._root is None or not self._root.is_dir():
            return
        for folder in self._root.iterdir():
            uid = folder.name.rpartition("_")[2]
            if folder.name.count("_") >= 2 and is_unwanted(uid):
                shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def tail(path: Path | None) -> str:
        """The end of a log, without CRI prefixes; empty if it cannot be read."""
        if path is None:
            return ""
        most = LOG_BYTES + LOG_LINES * _LINE_OVERHEAD_BYTES
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - most))
                data = file.read(most)
        except OSError:
            return ""
        lines = data.split(b"\n")
        if size > most:
            # The first line is incomplete.
            lines = lines[1:]
        return "".join(_content(each.decode("utf-8", "replace")) for each in lines if each)


def _content(line: str) -> str:
    """The line without time, stream and tag; partial lines have no line break."""
    parts = line.split(" ", 3)
    if len(parts) < 4:
        return ""
    return parts[3] if parts[2].startswith("P") else f"{parts[3]}\n"
