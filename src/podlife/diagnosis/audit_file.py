"""Reads an audit log for an explanation: a file with its rotated siblings, compressed or not, or standard input.

A log is read line by line, whatever its size, or no more than its newest part; only what concerns the subject is kept.
Lines that are not audit events are counted, and the number is reported.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podlife.errors import ConfigError
from podlife.explain import AuditCollection

STDIN = "-"
# An event has at most a few megabytes; a longer line is not an audit event.
_MOST_LINE_BYTES = 16 << 20


def read_audit_file(found: AuditCollection, source: str, most_bytes: int = 0) -> list[str]:
    """Feed the log, with its rotated files, to the collection; with `most_bytes` only that much of the newest. What
    could not be read. Raises ConfigError for a file that is not there or may not be read."""
    unread = _read(found, source, most_bytes)
    if found.unreadable:
        lines = f"{found.unreadable} line{'s' if found.unreadable > 1 else ''}"
        unread.append(f"{lines} of the audit log {source} not readable as audit events")
    return unread


def _read(found: AuditCollection, source: str, most_bytes: int) -> list[str]:
    if source == STDIN:
        _feed(found, sys.stdin.buffer.readline)
        return []
    unread: list[str] = []
    path, left = Path(source), most_bytes or sys.maxsize
    # The newest first: a collection takes lines in any order.
    for each in (path, *reversed(siblings_of(path))):
        if left <= 0:
            return [*unread, f"the audit log {path} before its last {most_bytes >> 20} MiB"]
        try:
            with _opened(each, left if most_bytes else 0) as file:
                rest = _feed(found, file.readline, left)
                # Nothing older is read once the beginning of a file was skipped.
                left = 0 if most_bytes and file.tell() > left else rest
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or str(error)
            if each == path:
                raise ConfigError(f"cannot read the audit log {path}: {why}") from None
            # A sibling may have been removed by a rotation.
            unread += [] if isinstance(error, FileNotFoundError) else [f"{each}: {why}"]
    return unread


def siblings_of(path: Path) -> list[Path]:
    """Rotated files, the oldest first: as kube-apiserver names them (audit-TIME.log), and as logrotate does
    (audit.log.1)."""
    try:
        beside = [each for each in path.parent.iterdir() if _is_rotated(each.name, path) and each.is_file()]
        return sorted(beside, key=lambda each: (each.stat().st_mtime, each.name))
    except OSError:
        return []


def _is_rotated(name: str, path: Path) -> bool:
    is_stamped = name.startswith(f"{path.stem}-") and name.removesuffix(".gz").endswith(path.suffix)
    return name.startswith(f"{path.name}.") or is_stamped


@contextmanager
def _opened(path: Path, last_bytes: int) -> Iterator[io.BufferedIOBase]:
    """Opened once: what was read of a pipe cannot be read again. With `last_bytes`, only the end of a plain file."""
    with path.open("rb") as file:
        # No line of a log begins with the first byte of gzip's mark.
        if file.peek(1)[:1] == b"\x1f":
            yield gzip.GzipFile(fileobj=file)
            return
        if last_bytes and file.seekable() and (size := file.seek(0, io.SEEK_END)) >= 0:
            file.seek(max(0, size - last_bytes))
            if size > last_bytes:
                file.readline(_MOST_LINE_BYTES)
        yield file


def _feed(found: AuditCollection, read_line: Callable[[int], bytes], left: int = sys.maxsize) -> int:
    """How many bytes more may be read."""
    while left > 0 and (line := read_line(_MOST_LINE_BYTES)):
        left -= len(line)
        if line.endswith(b"\n") or len(line) < _MOST_LINE_BYTES:
            found.add(line)
            continue
        found.unreadable += 1
        while (rest := read_line(_MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
    return left
