"""File of an audit log: private, in whole lines, rotated by size, old files removed by age and number.

Rotated files are named as kube-apiserver names them: `audit-2030-01-01T00-00-00.000.log` beside `audit.log`. A failed
write leaves no partial line.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from podlife.clock import Clock
from podlife.errors import ConfigError

_STAMP = "%Y-%m-%dT%H-%M-%S"


class AuditLogFile:
    """`backups` 0 keeps all rotated files and `age_days` 0 keeps them forever, as kube-apiserver's flags do."""

    def __init__(
        self, path: Path, clock: Clock, *, size_bytes: int, age_days: int = 0, backups: int = 0
    ) -> None:
        self.path = path
        self._clock = clock
        self._size_bytes = size_bytes
        self._age_days = age_days
        self._backups = backups
        self._descriptor = -1
        self._size = 0

    def open(self) -> None:
        """Open the file; raises ConfigError if it cannot be written."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()
            self._prune()
        except OSError as error:
            raise ConfigError(
                f"cannot write the audit log {self.path}: {error.strerror}; choose another with --audit-log-path"
            ) from None

    def write(self, lines: bytes) -> None:
        """Append whole lines; raises OSError, and then none of them is in the file."""
        if self._descriptor < 0:
            self._open()
        if self._size and self._size + len(lines) > self._size_bytes:
            self._rotate()
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError:
            if written:
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += written

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        descriptor = os.open(
            self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600
        )
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(0, "not a regular file")
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
            size = found.st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                # The previous process was killed in the middle of a line.
                size += os.write(descriptor, b"\n")
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor, self._size = descriptor, size

    def _rotate(self) -> None:
        # Do not rename anything that replaced the file since it was opened.
        is_ours = self._is_in_place()
        self.close()
        if is_ours:
            self.path.rename(self._backup_path())
        self._open()
        self._prune()

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def _backup_path(self) -> Path:
        at = self._clock.now().astimezone(UTC)
        while True:
            name = f"{self.path.stem}-{at:{_STAMP}}.{at.microsecond // 1000:03d}{self.path.suffix}"
            if not (path := self.path.with_name(name)).exists():
                return path
            at += timedelta(milliseconds=1)

    def _prune(self) -> None:
        old = sorted(backups_of(self.path), reverse=True)
        oldest = self._clock.now() - timedelta(days=self._age_days)
        for number, (at, path) in enumerate(old):
            is_excess = self._backups and number >= self._backups
            is_stale = self._age_days and at < oldest
            if is_excess or is_stale:
                path.unlink(missing_ok=True)


def backups_of(path: Path) -> list[tuple[datetime, Path]]:
    """Rotated files of an audit log, each with its rotation time, oldest first."""
    found = []
    for each in path.parent.iterdir():
        if not each.name.startswith(f"{path.stem}-") or not each.is_file():
            continue
        stamp = each.name.removeprefix(f"{path.stem}-").removesuffix(".gz").removesuffix(path.suffix)
        try:
            at = datetime.strptime(stamp, f"{_STAMP}.%f").replace(tzinfo=UTC)
        except ValueError:
            continue
        found.append((at, each))
    return sorted(found)
