"""A container's log in the CRI format: `2030-01-01T00:00:00.000000000Z stdout F text`, rotated by size.

A line longer than 16 KiB is written in parts, all but the last tagged `P`. On a full disk, lines that do not fit are
dropped; the container keeps running.
"""

from __future__ import annotations

import os
import time

_LINE_BYTES = 16 * 1024


class LogFile:
    """Writes the output streams of one container; lines are assembled per stream."""

    def __init__(self, path: str, *, max_bytes: int, max_files: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_files = max(max_files, 1)
        self._rest: dict[str, bytes] = {}
        self._fd = -1
        self._size = 0
        self._second = -1
        self._second_text = ""

    def feed(self, stream: str, chunk: bytes) -> None:
        """Write complete lines; buffer the rest."""
        now = self._now()
        data = self._rest.pop(stream, b"") + chunk
        lines = data.split(b"\n")
        rest = lines.pop()
        full, partial = f"{now} {stream} F ".encode(), f"{now} {stream} P ".encode()
        out: list[bytes] = []
        for line in lines:
            while len(line) > _LINE_BYTES:
                out += (partial, line[:_LINE_BYTES], b"\n")
                line = line[_LINE_BYTES:]  # noqa: PLW2901 - the rest of the line
            out += (full, line, b"\n")
        while len(rest) > _LINE_BYTES:
            out += (partial, rest[:_LINE_BYTES], b"\n")
            rest = rest[_LINE_BYTES:]
        if rest:
            self._rest[stream] = rest
        if out:
            self._write(b"".join(out))

    def end(self) -> None:
        """Write the unterminated last lines and close the file."""
        now = self._now()
        for stream, rest in self._rest.items():
            self._write(f"{now} {stream} F ".encode() + rest + b"\n")
        self._rest.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._fd).st_size

    def _write(self, data: bytes) -> None:
        try:
            if self._fd < 0:
                self._open()
            if self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            written = os.write(self._fd, data)
            if written < len(data):
                # A partial line would corrupt the next one.
                written = data.rfind(b"\n", 0, written) + 1
                os.ftruncate(self._fd, self._size + written)
            self._size += written
        except OSError:
            # Disk full, directory removed, or a symlink in the log's place: the next write tries again.
            return

    def _rotate(self) -> None:
        old = f"{self._path}.{time.time_ns():020d}"
        os.rename(self._path, old)
        os.close(self._fd)
        self._fd = -1
        self._open()
        folder, name = os.path.split(self._path)
        rotated = sorted(entry for entry in os.listdir(folder) if entry.startswith(name + "."))
        for entry in rotated[: max(0, len(rotated) - (self._max_files - 1))]:
            os.unlink(os.path.join(folder, entry))

    def _now(self) -> str:
        second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{nanoseconds:09d}Z"
